"""Models that choose among the interpreters of a server."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from msx_frontend import __version__
from tests.e2e.server import new_store, pack_service, run_server, wait_until
from tests.interpreters import install_other_msx, new_interpreter, site_packages

pytestmark = pytest.mark.e2e


def test_two_interpreters_side_by_side(tmp_path: Path) -> None:
    other, old = new_interpreter(tmp_path / "other"), new_interpreter(tmp_path / "old", with_msx=False)
    install_other_msx(site_packages(tmp_path / "old"), "0.1.0", protocol=None)
    store = new_store(tmp_path)
    for model, config in (("usual", ""), ("chosen", "other"), ("refused", "old"), ("unknown", "vllm")):
        pack_service("which_python", store, model=model, config=f"python: {config}\n" if config else None)
    properties = f"pythons=other={other},old={old}\n"
    with run_server(tmp_path, "--models", "usual.mar", "chosen.mar", properties=properties) as server:
        told = {model: server.predict(model).json() for model in ("usual", "chosen")}
        assert told["chosen"] == {"executable": str(other), "prefix": str(other.parents[1])}
        assert told["usual"]["prefix"] != told["chosen"]["prefix"]
        assert "interpreter" not in server.describe("usual")
        described = server.describe("chosen")["interpreter"]
        assert (described["name"], described["path"]) == ("other", str(other))
        assert described["packages"]["msx-serve"] == __version__
        for model, words in (
            ("refused", f"python: old ({old}) has msx-serve 0.1.0 with version 0 of the workers' protocol, and this"),
            ("unknown", "python: vllm is not an interpreter of this server's key pythons, which has other, old: add"),
        ):
            reply = server.register(Path(f"{model}.mar"))
            assert (reply.status_code, reply.json()["type"]) == (400, "InvalidModelException")
            assert words in reply.json()["message"]
        (pid,) = server.worker_pids("chosen")
        other.unlink()
        os.kill(pid, signal.SIGKILL)
        sentence = f"chosen: python: other ({other}) cannot be run: No such file or directory"
        wait_until(lambda: server.describe("chosen").get("reason") == sentence, "describe says why", server.tail)
        assert server.predict("usual").status_code == 200
