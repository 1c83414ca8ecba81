"""The time in which certificates are valid, and lines in the log before it ends."""

import logging
from datetime import datetime, timezone
from typing import NamedTuple

DAY = 86_400.0
SOON = 14 * DAY
"""Seconds before the end from which it is told, once a day."""

REFUSED, NOT_LET_IN = "clients refuse the server", "no client is let in whom it has signed"

log = logging.getLogger("msx.tls")


class Validity(NamedTuple):
    """Begin and end in seconds since the epoch; `subject` is that of the certificate whose end counts."""

    subject: str
    begin: float
    end: float

    @property
    def end_text(self) -> str:
        return _moment(self.end)

    def remark(self, now: float) -> tuple[int, str] | None:
        """The level of the log and what is wrong, or soon will be. A clock may be wrong, so that it is not refused."""
        if now > self.end:
            return logging.ERROR, f"the certificate of {self.subject} has expired on {self.end_text}"
        if now < self.begin:
            return logging.ERROR, f"the certificate of {self.subject} is not valid before {_moment(self.begin)}"
        if now > self.end - SOON:
            left = f"{(self.end - now) / DAY:.1f}"
            return logging.WARNING, f"the certificate of {self.subject} expires on {self.end_text}, in {left} days"
        return None


class ExpiryLog:
    """Tells of a certificate that has expired, or soon will: when it is read, and once a day. `name` is the key and
    the file, `loss` what does not work without it."""

    def __init__(self, name: str, loss: str = REFUSED) -> None:
        self._name, self._loss = name, loss
        self._said: tuple[Validity, float] | None = None

    def look(self, validity: Validity, now: float) -> None:
        if self._said is not None and self._said[0] == validity and now - self._said[1] < DAY:
            return
        if (found := validity.remark(now)) is not None:
            self._said = validity, now
            text = "%s: %s: without a newer one %s; the files are read again when they change"
            log.log(found[0], text, self._name, found[1], self._loss)


def validity_of(chain: bytes) -> Validity:
    """The validity of a chain in PEM, all of which clients need: until the first one ends."""
    found = _each(chain)
    return min(found, key=lambda one: one.end)._replace(begin=max(one.begin for one in found))


def validity_of_any(authorities: bytes) -> Validity:
    """The validity of authorities in PEM, any of which may have signed: until the last one ends."""
    found = _each(authorities)
    return max(found, key=lambda one: one.end)._replace(begin=min(one.begin for one in found))


def _each(pem: bytes) -> list[Validity]:
    from cryptography.x509 import load_pem_x509_certificates

    return [
        Validity(
            one.subject.rfc4514_string(), one.not_valid_before_utc.timestamp(), one.not_valid_after_utc.timestamp()
        )
        for one in load_pem_x509_certificates(pem)
    ]


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M} UTC"
