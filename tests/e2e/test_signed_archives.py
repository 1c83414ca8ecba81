"""A server that unpacks only signed archives."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from msx_archiver.cli import main
from tests.archiver.test_signatures import write_keys
from tests.e2e.server import new_store, pack_service, run_server, start_server

pytestmark = pytest.mark.e2e


def test_only_signed_archives_are_served(tmp_path: Path) -> None:
    private, public = write_keys(tmp_path / "keys")
    signed, other = (pack_service("echo", new_store(tmp_path), model=name) for name in ("signed", "other"))
    assert CliRunner().invoke(main, ["sign", str(signed), "--key", str(private)]).exit_code == 0
    properties = f"require_signature=true\nsignature_keys={public.parent}\n"
    with run_server(tmp_path, "--models", "signed.mar", properties=properties) as server:
        assert server.predict("signed", b"x").content == b"x"
        reply = server.register(other)
        assert (reply.status_code, reply.json()["type"]) == (400, "InvalidModelException")
        assert reply.json()["message"].startswith("other.mar is not signed: other.mar.sig is missing beside it")
        folder = tmp_path / "store" / "folder"
        assert CliRunner().invoke(main, ["unpack", str(signed), "--to", str(folder)]).exit_code == 0
        assert "cannot be signed, and require_signature is on" in server.register(folder).json()["message"]


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ("require_signature=true\n", "require_signature needs signature_keys"),
        ("require_signature=true\nsignature_keys=/dev/null\n", "/dev/null is not a public key of Ed25519"),
    ],
)
def test_a_key_ring_that_cannot_be_used(tmp_path: Path, properties: str, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        start_server(tmp_path, properties=properties)
