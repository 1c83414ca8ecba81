"""Archives laid out as torch-model-archiver 0.12 and torch-workflow-archiver lay them out, member by member."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

FORMATS = ("default", "zip-store", "tgz", "no-archive")


def torch_archive(
    folder: Path,
    name: str,
    files: dict[str, bytes | str],
    *,
    archive_format: str = "default",
    runtime: str = "python",
    **model: Any,
) -> Path:
    """`model` are keys of the manifest's section beside modelName, by TorchServe's names; None leaves one out.

    The manifest comes last; there are no entries for folders, and no digests.
    """
    content = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
    section = {"modelName": name, "handler": "h.py", "modelVersion": "1.0", **model}
    manifest = {
        "createdOn": "21/11/2026 10:11:12",
        "runtime": runtime,
        "model": {key: value for key, value in section.items() if value is not None},
        "archiverVersion": "0.12.0",
    }
    content["MAR-INF/MANIFEST.json"] = json.dumps(manifest, indent=2).encode()
    return _WRITERS[archive_format](folder, name, content)


def torch_workflow(folder: Path, name: str, files: dict[str, bytes | str], spec_file: str, handler: str) -> Path:
    """`name.war`."""
    workflow = {"workflowName": name, "specFile": spec_file, "handler": handler}
    manifest = {"createdOn": "21/11/2026 10:11:12", "workflow": workflow, "archiverVersion": "0.2.15"}
    content = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
    content["WAR-INF/MANIFEST.json"] = json.dumps(manifest, indent=2).encode()
    return _zip(folder / f"{name}.war", content, zipfile.ZIP_DEFLATED)


def _zip(path: Path, content: dict[str, bytes], compression: int) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def _tgz(folder: Path, name: str, content: dict[str, bytes]) -> Path:
    path = folder / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, data in content.items():
            info = tarfile.TarInfo(f"{name}/{member}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def _folder(folder: Path, name: str, content: dict[str, bytes]) -> Path:
    for member, data in content.items():
        file = folder / name / member
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder / name


_WRITERS = {
    "default": lambda folder, name, content: _zip(folder / f"{name}.mar", content, zipfile.ZIP_DEFLATED),
    "zip-store": lambda folder, name, content: _zip(folder / f"{name}.mar", content, zipfile.ZIP_STORED),
    "tgz": _tgz,
    "no-archive": _folder,
}
