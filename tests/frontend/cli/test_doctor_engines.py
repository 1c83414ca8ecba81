"""`msx-serve doctor` says which engine serves a folder that is not packed."""

from __future__ import annotations

import json
from pathlib import Path

from msx_frontend.cli.doctor.engines import check_engines
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.findings import Level
from tests.frontend.assembly.in_process import config_of
from tests.interpreters import stub_interpreter


def write_folder(folder: Path, model_type: str) -> str:
    folder.mkdir()
    members = {"model_type": model_type, "architectures": ["XForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(members))
    return str(folder)


def test_each_folder_and_its_engine(tmp_path: Path) -> None:
    vllm = stub_interpreter(tmp_path / "python", packages={"vllm": "0.32.0"})
    given = tuple(f"{kind}={write_folder(tmp_path / kind, kind)}" for kind in ("llama", "falcon_h1"))
    here = {"model_store": tmp_path, "huggingface": (*given, f"none={tmp_path}")}
    own, other = check_engines(Machine(config_of(tmp_path, **here, pythons=(f"vllm={vllm}",))))
    assert (own.level, own.found) == (Level.OK, "llama: served by MSX's own engine: it knows 'llama'")
    assert other.found == (
        "falcon_h1: served by vLLM 0.32.0 of the interpreter vllm: MSX's own engine does not know 'falcon_h1'"
    )
    own, other = check_engines(Machine(config_of(tmp_path, **here)))
    assert (own.level, other.level) == (Level.OK, Level.FAILED)
    assert "no interpreter of this server has vLLM: install vLLM" in other.found
