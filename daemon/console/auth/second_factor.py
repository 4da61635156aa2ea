"""The second factor of local users: TOTP (RFC 6238) from a secret that the person's own device holds.

Each code counts once. No web I/O, no waiting; `daemon/console/auth/users.py` keeps the secrets.
"""

import hmac
from datetime import datetime

import pyotp

__all__ = ["PERIOD_S", "SLACK", "address_of", "code_at", "new_secret", "step_of"]

PERIOD_S = 30
SLACK = 1
"""The number of periods by which a clock may be wrong."""


def new_secret() -> str:
    """160 bits in base32."""
    return pyotp.random_base32()


def address_of(secret: str, name: str, site: str) -> str:
    """The content of the QR code for the person's application."""
    return pyotp.TOTP(secret, interval=PERIOD_S).provisioning_uri(name=name, issuer_name=f"feltd {site}")


def code_at(secret: str, at: datetime) -> str:
    """The code that a device with this secret shows."""
    return pyotp.TOTP(secret, interval=PERIOD_S).at(int(at.timestamp()))


def step_of(secret: str, code: str, now: datetime) -> int | None:
    """The period of which this is the code, of those around `now`; None for a wrong code."""
    digits = code.replace(" ", "")
    if len(digits) != 6 or not (digits.isascii() and digits.isdigit()):
        return None
    totp = pyotp.TOTP(secret, interval=PERIOD_S)
    this = int(now.timestamp()) // PERIOD_S
    steps = range(this - SLACK, this + SLACK + 1)
    return next((one for one in steps if hmac.compare_digest(totp.at(one * PERIOD_S), digits)), None)
