"""Certificates that end soon."""

from __future__ import annotations

import pytest

from msx_net.tls.validity import DAY, ExpiryLog, Validity, validity_of
from tests.certificates import Certificate

NAME = "certificate_file: /c.pem"
VALID = Validity("CN=localhost", 1_000 * DAY, 1_100 * DAY)


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    found = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return found


@pytest.mark.parametrize(
    ("day", "level", "words"),
    [
        (999.5, "ERROR", "is not valid before 1972-09-27 00:00 UTC"),
        (1085.9, "", ""),
        (1086.5, "WARNING", "expires on 1973-01-05 00:00 UTC, in 13.5 days"),
        (1100.5, "ERROR", "has expired on 1973-01-05 00:00 UTC: without a newer one clients refuse the server"),
    ],
)
def test_what_is_said(caplog: pytest.LogCaptureFixture, day: float, level: str, words: str) -> None:
    ExpiryLog(NAME).look(VALID, day * DAY)
    found = said(caplog)
    assert [one for one, _ in found] == ([level] if level else [])
    assert all(text.startswith(f"{NAME}: the certificate of CN=localhost {words}") for _, text in found)


def test_it_is_said_once_a_day_and_of_each_certificate(caplog: pytest.LogCaptureFixture) -> None:
    log, now = ExpiryLog(NAME), 1_090 * DAY
    for seconds in range(0, 5 * int(DAY), 7200):
        log.look(VALID, now + seconds)
    assert len(said(caplog)) == 5
    log.look(VALID._replace(subject="CN=other"), now + 5 * DAY - 7000)
    assert len(said(caplog)) == 1
    log.look(VALID._replace(end=2_000 * DAY), now + 6 * DAY)
    assert said(caplog) == []


def test_the_one_that_ends_first_counts() -> None:
    own, issuer = Certificate.make(days=60), Certificate.make(days=5)
    found = validity_of(own.pem + issuer.pem)
    assert found.end == issuer.certificate.not_valid_after_utc.timestamp()
    assert found.begin == max(one.certificate.not_valid_before_utc.timestamp() for one in (own, issuer))
