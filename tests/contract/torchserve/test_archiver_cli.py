"""torch-model-archiver's and torch-workflow-archiver's command lines, unchanged, by the names of ours.

contract#archivers
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from msx_archiver.cli import main
from msx_archiver.workflow_cli import main as workflow_main

MANIFEST = "MAR-INF/MANIFEST.json"
FILES = {
    "h.py": "def handle(data, context): return data\ndef func(data, context): return data\n",
    "noext.py": "def handle(data, context): return data\n",
    "w.pt": "weights",
    "model.py": "class Net: pass\n",
    "requirements.txt": "numpy\n",
    "c.yaml": "batchSize: 2\n",
    "x1.json": "1",
    "x2.json": "2",
    "extra/a.txt": "a",
    "extra/sub/b.txt": "b",
    "extra/.hid/c": "c",
    "extra/__pycache__/p.pyc": "p",
    "extra/__MACOSX/m": "m",
    "extra/.dot": "d",
    "libh.so": "lib",
    "spec.yaml": "dag: {}\n",
}
NAMED = ["--model-name", "m", "--version", "1.0"]
H = [*NAMED, "--handler", "h.py"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args), prog_name="msx-archiver")


def packed(*args: str) -> tuple[dict[str, Any], set[str]]:
    """The manifest's section, and what else is in m.mar."""
    result = run(*args)
    assert result.exit_code == 0, result.stderr
    with zipfile.ZipFile("m.mar") as archive:
        assert archive.namelist()[-1] == MANIFEST, "it is always last"
        manifest = json.loads(archive.read(MANIFEST))
        return manifest["model"], set(archive.namelist()) - {MANIFEST}


@pytest.mark.parametrize(
    ("handler", "name", "files"),
    [
        ("h.py", "h.py", {"h.py"}),
        ("noext", "noext", {"noext.py"}),
        ("h:func", "h:func", {"h.py"}),
        ("h.py:func", "h:func", {"h.py"}),  # fails there
        ("extra/../h.py", "h.py", {"h.py"}),
        ("base_handler", "base_handler", set()),
        ("text_classifier", "text_classifier", set()),
        ("image_classifier", "image_classifier", set()),
        ("object_detector", "object_detector", set()),
        ("image_segmenter", "image_segmenter", set()),
        ("dali_image_classifier", "dali_image_classifier", set()),
        ("vllm_handler", "vllm_handler", set()),
        ("trt_llm_handler", "trt_llm_handler", set()),
    ],
)
def test_handlers(handler: str, name: str, files: set[str]) -> None:
    """Base names in the manifest; a file is packed, a built-in handler is not."""
    assert packed(*NAMED, "--handler", handler) == (
        {"modelName": "m", "handler": name, "modelVersion": "1.0"},
        files,
    )


def test_an_absolute_path_of_a_handler(folder: Path) -> None:
    assert packed(*NAMED, "--handler", str(folder / "h.py"))[0]["handler"] == "h.py"


def test_every_option() -> None:
    options = ["--serialized-file", "./w.pt", "--model-file", "./model.py", "-r", "requirements.txt", "-c", "./c.yaml"]
    model, files = packed(*H, *options)
    assert model == {
        "modelName": "m",
        "handler": "h.py",
        "serializedFile": "w.pt",
        "modelFile": "model.py",
        "modelVersion": "1.0",
        "requirementsFile": "requirements.txt",
        "configFile": "c.yaml",
    }
    assert files == {"h.py", "w.pt", "model.py", "requirements.txt", "c.yaml"}


@pytest.mark.parametrize(
    ("extra", "files"),
    [
        ("extra", {"a.txt", "sub/b.txt", ".dot"}),
        ("extra/", {"a.txt", "sub/b.txt", ".dot"}),
        ("extra,x1.json", {"a.txt", "sub/b.txt", ".dot", "x1.json"}),
        ("extra/sub/b.txt", {"b.txt"}),
        ("x*.json", {"x1.json", "x2.json"}),
        ("x?.json,w.pt", {"x1.json", "x2.json", "w.pt"}),
        ("x[1].json", {"x1.json"}),
        ("", set()),
    ],
)
def test_extra_files(extra: str, files: set[str]) -> None:
    assert packed(*H, "--extra-files", extra)[1] == files | {"h.py"}


def test_a_pattern_that_matches_nothing_is_a_warning() -> None:
    result = run(*H, "--extra-files", "z*.json")
    assert result.exit_code == 0
    assert "z*.json" in result.stderr


@pytest.mark.parametrize("runtime", ["python", "python3", "LSP"])
def test_runtimes(runtime: str) -> None:
    handler = "libh" if runtime == "LSP" else "h.py"
    assert packed(*NAMED, "--handler", handler, "--runtime", runtime)[1] == {"libh.so" if runtime == "LSP" else "h.py"}
    with zipfile.ZipFile("m.mar") as archive:
        assert json.loads(archive.read(MANIFEST))["runtime"] == runtime


@pytest.mark.parametrize(
    ("handler", "files"), [("BaseHandler", set()), ("TorchScriptHandler", set()), ("libh:H", {"libh.so"})]
)
def test_handlers_of_runtime_lsp(handler: str, files: set[str]) -> None:
    model, found = packed(*NAMED, "--handler", handler, "--runtime", "LSP")
    assert (model["handler"], found) == (handler, files)
    assert run(*NAMED, "--handler", "absent", "--runtime", "LSP", "-f").exit_code == 1


def test_formats() -> None:
    for name, made in {"default": "m.mar", "zip-store": "m.mar", "tgz": "m.tar.gz", "no-archive": "m"}.items():
        assert run(*H, "--archive-format", name, "-f").stdout == f"{made}\n"
    with zipfile.ZipFile("m.mar") as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
    with tarfile.open("m.tar.gz") as tar:
        assert tar.getnames() == ["m/h.py", f"m/{MANIFEST}"]
    assert Path("m", MANIFEST).is_file()
    assert Path("m", "h.py").is_file()


@pytest.mark.parametrize("archive_format", ["default", "tgz", "no-archive"])
def test_force(archive_format: str) -> None:
    args = [*H, "--archive-format", archive_format]
    assert run(*args).exit_code == 0
    again = run(*args)
    assert again.exit_code == 1
    assert "already exists" in again.stderr
    assert "--force/-f" in again.stderr
    assert run(*args, "--force").exit_code == 0


@pytest.mark.parametrize("name", ["m m", "_m", "ä", "", "a/b"])
def test_bad_names(name: str) -> None:
    result = run("--model-name", name, "--version", "1.0", "--handler", "h.py")
    assert result.exit_code == (1 if name else 2)
    assert not name or "Model name contains special characters" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        [*NAMED, "--handler", "nope"],
        [*NAMED, "--handler", "nope.py"],
        [*H, "--serialized-file", "no.pt"],
        [*H, "--model-file", "no.py"],
        [*H, "--extra-files", "no.json"],
        [*H, "-r", "no.txt"],
        [*H, "-c", "no.yaml"],
    ],
)
def test_missing_files(args: list[str]) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no" in result.stderr
    assert not Path("m.mar").exists()


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--version", "1.0", "--handler", "h.py"],
        ["--model-name", "m", "--handler", "h.py"],
        NAMED,
        [*H, "--runtime", "ruby"],
        [*H, "--archive-format", "rar"],
        [*H, "--nonsense"],
        [*H, "--model", "m"],
        [*H, "extra"],
    ],
)
def test_options_that_make_no_sense(args: list[str]) -> None:
    """argparse's status, and click's."""
    assert run(*args).exit_code == 2


@pytest.mark.parametrize(
    "args",
    [
        ["--model-name=m", "-v1.0", "--handler=h.py"],
        ["--model-n", "m", "--vers", "1.0", "--hand", "h.py"],
        ["--model-name", "m", "-v", "1.0", "--handler", "h.py", "--serialized=w.pt"],
    ],
)
def test_spellings(args: list[str]) -> None:
    """argparse takes what an option begins with, as long as it is one."""
    assert packed(*args)[0]["modelVersion"] == "1.0"


def test_an_export_path(folder: Path) -> None:
    (folder / "out").mkdir()
    assert run(*H, "--export-path", "out").stdout == "out/m.mar\n"
    assert run(*H, "--export-path", str(folder / "new")).exit_code == 0
    assert (folder / "new" / "m.mar").is_file()


def test_workflows() -> None:
    args = ["--workflow-n", "w", "--spec-file", "spec.yaml", "--handler", "h.py", "--extra-files", "x1.json,x2.json"]
    result = CliRunner().invoke(workflow_main, args)
    assert (result.exit_code, result.stdout) == (0, "w.war\n")
    with zipfile.ZipFile("w.war") as archive:
        assert set(archive.namelist()) == {"spec.yaml", "h.py", "x1.json", "x2.json", "WAR-INF/MANIFEST.json"}
        manifest = json.loads(archive.read("WAR-INF/MANIFEST.json"))
    assert manifest["workflow"] == {"workflowName": "w", "specFile": "spec.yaml", "handler": "h.py"}
    assert {"createdOn", "archiverVersion"} < manifest.keys()


@pytest.mark.parametrize("module", ["msx_archiver.cli", "msx_archiver.workflow_cli"])
def test_help(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "-h"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "--extra-files" in done.stdout
