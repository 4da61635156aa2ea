"""The TLS context of a client."""

import ssl

__all__ = ["client_context"]


def client_context(ca_file: str, certificate: str = "", key: str = "") -> ssl.SSLContext:
    """A context that trusts only `ca_file` and presents `certificate`. Raises OSError, which includes ssl.SSLError."""
    context = ssl.create_default_context(cafile=ca_file)
    if certificate:
        context.load_cert_chain(certificate, key, password=lambda: "")  # otherwise OpenSSL prompts on the terminal
    return context
