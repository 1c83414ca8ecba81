"""Names of `vllm:` are checked while packing, by the vLLM of an interpreter."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from msx_archiver import vllm_names
from msx_archiver.errors import PackError
from msx_archiver.vllm_names import check_vllm_names
from msx_core import interpreter_probe
from msx_core.config import ModelConfig

GOOD, BAD = ModelConfig(vllm={"max-model-len": "8k"}), ModelConfig(vllm={"max-modellen": "8k"})
MEANT = r"^vllm\.max_modellen: vLLM's engine has no such argument; did you mean max_model_len\?$"


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_by_the_vllm_of_a_named_interpreter(tmp_path: Path) -> None:
    python = program(tmp_path / "python", """echo '["max_model_len"]'""")
    check_vllm_names(GOOD, python)
    with pytest.raises(PackError, match=MEANT):
        check_vllm_names(BAD, python)


def test_by_the_vllm_beside_the_archiver(monkeypatch: pytest.MonkeyPatch) -> None:
    names: Sequence[str] = ()
    monkeypatch.setattr(interpreter_probe, "vllm_arguments", lambda: list(names))
    check_vllm_names(BAD, None)
    names = ["max_model_len"]
    with pytest.raises(PackError, match=MEANT):
        check_vllm_names(BAD, None)


def test_an_interpreter_without_vllm(tmp_path: Path) -> None:
    with pytest.raises(
        PackError, match=r"^--python: .* has no vLLM, which the section vllm: of the config file is for"
    ):
        check_vllm_names(GOOD, Path(sys.executable))
    check_vllm_names(ModelConfig(), Path(sys.executable))


@pytest.mark.parametrize("text", ["exit 3", "echo '{'"])
def test_what_is_no_interpreter(tmp_path: Path, text: str) -> None:
    with pytest.raises(PackError, match=r"^--python: .*/python cannot be asked for vLLM: "):
        check_vllm_names(GOOD, program(tmp_path / "python", text))
    with pytest.raises(PackError, match=r"cannot be asked for vLLM: .*No such file"):
        check_vllm_names(GOOD, tmp_path / "none")


def test_one_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_names, "LIMIT", 0)
    with pytest.raises(PackError, match=r"did not end within 0 s when it was asked for vLLM"):
        check_vllm_names(GOOD, program(tmp_path / "python", "exec sleep 60"))
