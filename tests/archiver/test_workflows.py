"""Workflow archives: made, read, refused."""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from msx_archiver.cache import ArchiveCache
from msx_archiver.errors import ArchiveError, HostileArchiveError
from msx_archiver.reader import open_archive, open_workflow
from msx_archiver.workflow_cli import main
from msx_core.manifest import ManifestError
from msx_core.workflow_manifest import parse_workflow_manifest
from tests.archiver.conftest import Entry, tree, write_folder, write_zip

InFolder = Callable[..., Path]

SPEC = b"models:\n  a:\n    url: a.mar\ndag:\n  pre: [a]\n"
HANDLER = b"def pre(data, context):\n    return data\n"
WORKFLOW = {"workflowName": "w", "specFile": "spec.yaml", "handler": "h.py"}
# As torch-workflow-archiver 0.2.15 writes it, in this order.
FILES = {
    "spec.yaml": SPEC,
    "h.py": HANDLER,
    "WAR-INF/MANIFEST.json": json.dumps(
        {"createdOn": "21/11/2026 10:11:12", "workflow": WORKFLOW, "archiverVersion": "0.2.15"}, indent=2
    ).encode(),
}


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args), prog_name="msx-workflow-archiver")


def manifest_of(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        found: dict[str, Any] = json.loads(archive.read("WAR-INF/MANIFEST.json"))
    return found


@pytest.fixture
def war(tmp_path: Path) -> Path:
    return write_zip(tmp_path / "w.war", list(FILES.items()))


def test_torch_workflow_archivers_war_is_read(war: Path, tmp_path: Path) -> None:
    with open_workflow(war) as archive:
        workflow = archive.manifest.workflow
        assert (workflow.workflow_name, workflow.spec_file, workflow.handler) == ("w", "spec.yaml", "h.py")
        assert archive.read("spec.yaml") == SPEC
        assert archive.warnings == []
    unpacked = ArchiveCache(tmp_path / "cache").unpack_workflow(war)
    assert tree(unpacked.path) == FILES
    assert unpacked.manifest.workflow.workflow_name == "w"
    assert ArchiveCache(tmp_path / "cache").unpack_workflow(war) == unpacked


@pytest.mark.parametrize("inside", ["w", "w/only"])
def test_a_folder_is_a_workflow_too(tmp_path: Path, inside: str) -> None:
    write_folder(tmp_path / inside, FILES)
    unpacked = ArchiveCache(tmp_path / "cache").unpack_workflow(tmp_path / "w")
    assert unpacked.path == tmp_path / inside


def test_a_model_is_not_a_workflow_and_the_other_way_round(war: Path, mar: Path) -> None:
    with pytest.raises(ArchiveError, match=r"is not a workflow archive: it has no WAR-INF/MANIFEST\.json"):
        open_workflow(mar)
    with pytest.raises(ArchiveError, match=r"is not a model archive: it has no MAR-INF/MANIFEST\.json"):
        open_archive(war)


def test_no_archive(tmp_path: Path) -> None:
    (tmp_path / "w.war").write_text("nothing")
    with pytest.raises(ArchiveError, match="is not a workflow archive: it is neither a zip file"):
        open_workflow(tmp_path / "w.war")


def _link() -> Entry:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, b"/etc/passwd"


@pytest.mark.parametrize("entry", [("../out", b""), ("/out", b""), ("a\\b", b""), _link(), ("h.py/x", b"")])
def test_hostile(tmp_path: Path, entry: Entry) -> None:
    path = write_zip(tmp_path / "w.war", [*FILES.items(), entry])
    with pytest.raises(HostileArchiveError):
        ArchiveCache(tmp_path / "cache").unpack_workflow(path)
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == []


@pytest.mark.parametrize("missing", ["spec.yaml", "h.py"])
def test_a_named_file_is_missing(tmp_path: Path, missing: str) -> None:
    path = write_zip(tmp_path / "w.war", [(name, data) for name, data in FILES.items() if name != missing])
    with pytest.raises(ArchiveError, match=f"'{missing}', which the archive does not have"):
        open_workflow(path)


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({}, "has no 'workflow', which is required"),
        ({"workflow": {"specFile": "s"}}, "has no 'workflow.workflowName', which is required"),
        ({"workflow": {"workflowName": "../w", "specFile": "s"}}, "'workflow.workflowName' is \"../w\""),
        ({"workflow": {"workflowName": "w", "specFile": ""}}, "'workflow.specFile' is \"\""),
        ([], "must be a JSON object"),
    ],
)
def test_a_manifest_that_cannot_be_meant(tree: Any, words: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_workflow_manifest(json.dumps(tree).encode())
    assert words in str(caught.value)
    assert str(caught.value).startswith("WAR-INF/MANIFEST.json")


def test_unknown_keys_are_warnings() -> None:
    _, warnings = parse_workflow_manifest(json.dumps({"a": 1, "workflow": {**WORKFLOW, "b": 2}}).encode())
    assert warnings == [
        "Unknown key 'a' in the manifest is ignored.",
        "Unknown key 'workflow.b' in the manifest is ignored.",
    ]


def test_options_of_torch_workflow_archiver(in_folder: InFolder) -> None:
    folder = in_folder(spec__yaml=SPEC, h__py=HANDLER, a__txt="a", b__txt="b")
    args = ["--workflow-name", "w", "--spec-file", str(folder / "spec.yaml"), "--handler", str(folder / "h.py")]
    result = run(*args, "--extra-files", "a.txt,b.txt", "--export-path", "out")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "out/w.war\n", "")
    assert manifest_of(Path("out/w.war"))["workflow"] == WORKFLOW
    with zipfile.ZipFile("out/w.war") as archive:
        assert archive.namelist() == ["a.txt", "b.txt", "h.py", "spec.yaml", "WAR-INF/MANIFEST.json"]
    with open_workflow(Path("out/w.war")) as opened:
        assert opened.read("spec.yaml") == SPEC


def test_names_that_hide_other_modules(in_folder: InFolder) -> None:
    in_folder(spec__yaml=SPEC, queue__py=HANDLER, types__py=HANDLER, h__py=HANDLER)
    named = ["--workflow-name=w", "--spec-file=spec.yaml"]
    assert "--handler: queue.py has the name of Python's module queue" in run(*named, "--handler=queue.py").stderr
    result = run(*named, "--handler=h.py", "--extra-files=types.py")
    assert (result.exit_code, "Warning: --extra-files: types.py has the name of" in result.stderr) == (0, True)


def test_without_a_handler(in_folder: InFolder) -> None:
    in_folder(spec__yaml=SPEC)
    assert run("--workflow-name=w", "--spec-file=spec.yaml").exit_code == 0
    assert "handler" not in manifest_of(Path("w.war"))["workflow"]


def test_force(in_folder: InFolder) -> None:
    in_folder(spec__yaml=SPEC)
    args = ["--workflow-name", "w", "--spec-file", "spec.yaml"]
    assert run(*args).exit_code == 0
    Path("spec.yaml").write_text("other: 1\n")
    before = Path("w.war").read_bytes()
    again = run(*args)
    assert (again.exit_code, again.stdout) == (1, "")
    words = "w.war already exists. Give --force/-f to overwrite it, or -o FILE to make another one."
    assert again.stderr == f"Error: {words}\n"
    assert run(*args, "-o", "out/w2.war").stdout == "out/w2.war\n"
    assert Path("w.war").read_bytes() == before
    assert run(*args, "-f").exit_code == 0
    assert Path("w.war").read_bytes() != before


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--spec-file", "spec.yaml"], 2, "Missing option '--workflow-name'"),
        (["--workflow-name", "w"], 2, "Missing option '--spec-file'"),
        (["--workflow-name", "w w", "--spec-file", "spec.yaml"], 1, "Workflow name contains special characters"),
        (["--workflow-name", "w", "--spec-file", "absent.yaml"], 1, "--spec-file: 'absent.yaml' does not exist"),
        (["--workflow-name", "w", "--spec-file", "spec.yaml", "--handler", "spec.yaml"], 1, "spec.yaml, line 1"),
        (["--workflow-name", "w", "--spec-file", "spec.yaml", "--extra-files", "x"], 1, "'x' does not exist"),
    ],
)
def test_refused(in_folder: InFolder, args: list[str], code: int, words: str) -> None:
    in_folder(spec__yaml="models: [\n")
    result = run(*args)
    assert result.exit_code == code
    assert words in result.stderr
    assert not Path("w.war").exists()
