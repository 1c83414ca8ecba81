"""The line that `msx-serve PATH` prints for the shell: it works, for each kind of model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_core.mindir import MindIRSignature, TensorSpec
from msx_frontend.cli.serve import banner
from msx_frontend.cli.serve.banner import curl
from tests.frontend.cli.test_status import info


def line_for(monkeypatch: pytest.MonkeyPatch, folder: Path, *inputs: TensorSpec) -> str:
    signature = MindIRSignature([*inputs], [], frozenset(), frozenset(), "g", "MindSpore", "2.10.0")
    monkeypatch.setattr(banner, "read_signature", lambda path: signature)
    return curl(info(folder), "m", folder / "net.mindir")


def body_of(line: str, folder: Path) -> Any:
    """Run by the shell, with a curl that prints its body."""
    (folder / "curl").write_text('#!/bin/sh\nwhile [ "$1" != -d ]; do shift; done; [ "$2" = @- ] && cat || echo "$2"\n')
    (folder / "curl").chmod(0o755)
    path = f"{folder}:/usr/local/bin:/usr/bin:/bin"
    done = subprocess.run(["sh", "-c", line], env={"PATH": path}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_text_has_a_mask_of_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tensors = [
        TensorSpec(name, kind, (-1, -1))
        for name, kind in (("input_ids", "int32"), ("attention_mask", "int32"), ("token_type_ids", "int64"))
    ]
    line = line_for(monkeypatch, tmp_path, *tensors, TensorSpec("valid_length", "int32", (-1,)))
    assert body_of(line, tmp_path) == {
        "input_ids": [[0]],
        "attention_mask": [[1]],
        "token_type_ids": [[0]],
        "valid_length": [1],
    }


def test_an_image_is_made_by_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = line_for(
        monkeypatch, tmp_path, TensorSpec("x", "float32", (-1, 3, 16, 16)), TensorSpec("mask", "bool", (1,))
    )
    assert line.startswith("python3 -c 'import json; ")
    assert body_of(line, tmp_path) == {"x": [[[[0] * 16] * 16] * 3], "mask": [True]}


def test_sides_of_any_length_are_those_of_a_small_image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = line_for(monkeypatch, tmp_path, TensorSpec("x", "float32", (-1, 1, -1, -1)))
    assert body_of(line, tmp_path) == {"x": [[[[0] * 32] * 32]]}


def test_a_name_for_a_shell_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for size in (1, 100):
        line = line_for(monkeypatch, tmp_path, TensorSpec("a'; exit 3; '\"", "float32", (size,)))
        assert body_of(line, tmp_path) == {"a'; exit 3; '\"": [0] * size}


@pytest.mark.parametrize("inputs", [(), (TensorSpec("x", "float32", (1024, 1024)),)])
def test_what_nobody_can_make_is_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, inputs: tuple[TensorSpec, ...]
) -> None:
    assert "--data-binary @FILE" in line_for(monkeypatch, tmp_path, *inputs)


def test_a_key_file_with_an_odd_name(tmp_path: Path) -> None:
    file = tmp_path / 'it\'s $HOME "here".json'
    file.write_text('{"inference": {"key": "secret"}}')
    line = curl(msgspec.structs.replace(info(tmp_path), key_file=str(file)), "m", tmp_path / "handler.py")
    assert "Authorization: Bearer secret" in arguments_of(line, tmp_path)


def test_sockets(tmp_path: Path) -> None:
    there = {"inference": f"unix:{tmp_path}/a b.sock", "management": f"unix:{tmp_path}/m.sock"}
    server = msgspec.structs.replace(info(tmp_path), key_file=None, **there)
    given = arguments_of(curl(server, "m", tmp_path / "handler.py"), tmp_path)
    assert given[:2] == ["--unix-socket", f"{tmp_path}/a b.sock"]
    assert given[-1] == "http://localhost/predictions/m"
    text = banner.banner(server, "m", tmp_path / "handler.py", "a handler")
    assert f"manage    http://localhost/models/m by the socket {tmp_path}/m.sock" in text
    assert f"console   not for a browser: {tmp_path}/m.sock is a Unix socket" in text


def test_a_certificate_of_ours_is_trusted(tmp_path: Path) -> None:
    secure = {"inference": "https://127.0.0.1:8443", "certificate_file": f"{tmp_path}/a b.pem"}
    server = msgspec.structs.replace(info(tmp_path), key_file=None, **secure)
    given = arguments_of(curl(server, "m", tmp_path / "handler.py"), tmp_path)
    assert given[:2] == ["--cacert", f"{tmp_path}/a b.pem"]
    assert given[-1] == "https://127.0.0.1:8443/predictions/m"
    plain = msgspec.structs.replace(server, inference="http://127.0.0.1:8080")
    assert "--cacert" not in curl(plain, "m", tmp_path / "handler.py")


def arguments_of(line: str, folder: Path) -> list[str]:
    """Run by the shell, with a curl that prints its arguments."""
    (folder / "curl").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (folder / "curl").chmod(0o755)
    path = f"{folder}:{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(["sh", "-c", line], env={"PATH": path}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()
