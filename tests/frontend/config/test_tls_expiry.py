"""Certificates of listeners that end soon."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.config import ServerConfig
from msx_frontend.config.tls_listeners import server_tls
from msx_net.listening.address import Address
from msx_net.tls.validity import DAY, validity_of
from tests.certificates import Certificate, write_pem
from tests.net.tls.test_validity import said


def test_a_server_looks_while_it_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = write_pem(own := Certificate.make(), tmp_path)
    address = Address("https", "127.0.0.1", 0)
    tls = server_tls(ServerConfig(inference_address=address, private_key_file=key, certificate_file=certificate))
    assert tls is not None
    assert said(caplog) == []
    end = own.certificate.not_valid_after_utc.timestamp()
    assert tls.identity.validity.end == end
    monkeypatch.setattr(time, "time", lambda: end - 3 * DAY)
    assert not tls.look()
    assert not tls.look()
    ((level, text),) = said(caplog)
    assert (level, f"certificate_file: {certificate}: " in text, "in 3.0 days" in text) == ("WARNING", True, True)


def test_authorities_of_clients_are_told_of_when_the_last_one_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key, certificate = write_pem(Certificate.make(), tmp_path)
    ends = Certificate.make(days=3)
    (ca := tmp_path / "ca.pem").write_bytes(Certificate.make(days=-1).pem + ends.pem)
    settings: dict[str, Any] = {"private_key_file": key, "certificate_file": certificate, "client_ca": ca}
    https = Address("https", "127.0.0.1", 0)
    server_tls(ServerConfig(inference_address=https, management_address=https, metrics_address=https, **settings))
    assert [text for level, text in said(caplog) if level == "WARNING" and text.startswith(f"client_ca: {ca}: ")] == [
        f"client_ca: {ca}: the certificate of CN=localhost expires on {validity_of(ends.pem).end_text}, in 3.0 days: "
        "without a newer one no client is let in whom it has signed; the files are read again when they change"
    ]
