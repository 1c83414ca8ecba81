"""`pythons`: the interpreters among which models choose."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from msx_frontend.config import ServerConfig, ServerConfigError
from msx_frontend.config.load import load_server_config
from msx_frontend.config.pythons import named_interpreters


def test_names_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (file := tmp_path / "config.properties").write_text(f"pythons=vllm = bin/python, own={sys.executable}\n")
    config, notices = load_server_config({}, file, {})
    named = {"vllm": tmp_path / "bin" / "python", "own": Path(sys.executable)}
    assert named_interpreters(config) == named, "a link is kept"
    assert notices == [
        f"pythons: vllm: {named['vllm']} is not an existing file: models with python: vllm cannot be served"
    ]
    assert named_interpreters(ServerConfig()) == {}


@pytest.mark.parametrize("part", ["vllm", "vllm=", "=/bin/python", "a b=/bin/python", "/bin/python", "a" * 65 + "=/x"])
def test_what_is_not_a_named_interpreter(part: str) -> None:
    with pytest.raises(ServerConfigError, match="is not a named interpreter: write NAME=/path/to/bin/python"):
        load_server_config({"pythons": part}, None, {})


def test_no_name_twice_and_not_too_many() -> None:
    with pytest.raises(ServerConfigError, match="pythons: 'a' stands there twice"):
        load_server_config({"pythons": "a=/x,a=/y"}, None, {})
    with pytest.raises(ServerConfigError, match="pythons: names 33 interpreters, and at most 32 are allowed"):
        load_server_config({"pythons": ",".join(f"a{n}=/x" for n in range(33))}, None, {})
