"""`ts.torch_handler.unit_tests.test_utils`, which tests of users' handlers import."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from msx_torchserve.packages.ts.torch_handler.unit_tests.test_utils.mock_context import MockContext
from msx_torchserve.packages.ts.torch_handler.unit_tests.test_utils.model_dir import copy_files, download_model


def test_a_context(tmp_path: Path) -> None:
    (tmp_path / "model-config.yaml").write_text("handler: {profile: true}\n")
    context = MockContext(None, str(tmp_path), "net.py", None, "m", "model-config.yaml")
    assert context.manifest == {"model": {"modelFile": "net.py"}}
    assert context.system_properties == {"model_dir": str(tmp_path)}
    assert context.model_yaml_config == {"handler": {"profile": True}}
    context.metrics.add_time("Loading", 5)
    assert MockContext().manifest == {"model": {"serializedFile": "model.pt", "modelFile": "model.py"}}


def test_an_explanation_is_asked_for_by_an_attribute() -> None:
    context = MockContext()
    assert not context.get_request_header(1, "explain")
    context.explain = True
    assert [context.get_request_header(number, "explain") for number in (0, 1)] == [False, True]


def test_files_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("served", "here", "model"):
        (tmp_path / name).mkdir()
    (tmp_path / "served" / "net.pt").write_bytes(b"weights")
    monkeypatch.chdir(tmp_path / "here")
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("NO_PROXY", "*")
        for _ in range(2):
            download_model(f"http://127.0.0.1:{server.server_port}/net.pt", tmp_path / "model")
            (tmp_path / "served" / "net.pt").unlink(missing_ok=True)
        server.shutdown()
    copy_files(tmp_path / "model", tmp_path / "here", {"model.pt": "copy.pt"})
    assert (tmp_path / "here" / "copy.pt").read_bytes() == b"weights"
