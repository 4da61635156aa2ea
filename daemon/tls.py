"""The TLS context of a client."""

import ssl

__all__ = ["client_context"]


def client_context(ca_file: str, certificate: str = "", key: str = "") -> ssl.SSLContext:
    """A context that accepts servers by `ca_file` alone and presents `certificate`. Raises OSError."""
    context = ssl.create_default_context(cafile=ca_file)
    if certificate:
        context.load_cert_chain(certificate, key, password=lambda: "")  # otherwise OpenSSL prompts on the terminal
    return context
