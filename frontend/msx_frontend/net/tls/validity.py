"""Until when the certificates that listeners show are valid, and what is said of it."""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from typing import NamedTuple

DAY = 86_400.0
SOON = 14 * DAY
"""Seconds before the end from which it is told, once a day."""

log = logging.getLogger("msx.tls")


class Validity(NamedTuple):
    """Of all certificates of a chain, in seconds since the epoch; `subject` is that of the one that ends first."""

    subject: str
    begin: float
    end: float

    @property
    def end_text(self) -> str:
        return _moment(self.end)

    def remark(self, now: float) -> tuple[int, str] | None:
        """The level of the log and what is wrong, or soon will be. A clock may be wrong, so that it is not refused."""
        if now > self.end:
            return logging.ERROR, f"the certificate of {self.subject} has expired on {self.end_text}: clients refuse it"
        if now < self.begin:
            return logging.ERROR, f"the certificate of {self.subject} is not valid before {_moment(self.begin)}"
        if now > self.end - SOON:
            left = f"{(self.end - now) / DAY:.1f}"
            return logging.WARNING, f"the certificate of {self.subject} expires on {self.end_text}, in {left} days"
        return None


class ExpiryLog:
    """Tells of a certificate that has expired, or soon will: when it is read, and once a day. `name` is the key and
    the file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said: tuple[Validity, float] | None = None

    def look(self, validity: Validity, now: float) -> None:
        if self._said is not None and self._said[0] == validity and now - self._said[1] < DAY:
            return
        if (found := validity.remark(now)) is not None:
            self._said = validity, now
            log.log(found[0], "%s: %s; the files are read again when they change", self._name, found[1])


def validity_of(chain: bytes) -> Validity:
    """`chain` is PEM: clients need all of it."""
    from cryptography.x509 import load_pem_x509_certificates

    certificates = load_pem_x509_certificates(chain)
    first = min(certificates, key=lambda one: one.not_valid_after_utc)
    begin = max(one.not_valid_before_utc for one in certificates)
    return Validity(first.subject.rfc4514_string(), begin.timestamp(), first.not_valid_after_utc.timestamp())


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M} UTC"
