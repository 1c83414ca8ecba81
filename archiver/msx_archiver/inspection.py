"""The contents of an archive as data."""

import tempfile
from pathlib import Path
from typing import Any

import msgspec

from msx_archiver.archive import Archive
from msx_archiver.errors import PackError
from msx_archiver.members import ArchiveMember
from msx_archiver.sources import check_config
from msx_core.manifest import Manifest
from msx_core.mindir import MindIRError, TensorSpec, parse_signature


class FileReport(msgspec.Struct, frozen=True, rename="camel"):
    """One file: unpacked size in bytes, and its digest if the manifest has one."""

    path: str
    size: int
    sha256: str | None


class TensorReport(msgspec.Struct, frozen=True, rename="camel"):
    """One input or output; -1 in `shape` is a dynamic dimension, [-2] a dynamic rank."""

    name: str
    dtype: str
    datatype: str | None
    shape: list[int]


class GraphReport(msgspec.Struct, frozen=True, rename="camel"):
    """One MindIR file."""

    path: str
    inputs: list[TensorReport]
    outputs: list[TensorReport]
    operators: list[str]
    producer: str


class InspectionReport(msgspec.Struct, frozen=True, rename="camel"):
    """Output of `msx-archiver inspect --json`. Sizes in bytes; `archiveSize` is 0 for a folder."""

    path: str
    format: str
    archive_size: int
    unpacked_size: int
    manifest: dict[str, Any]
    files: list[FileReport]
    graphs: list[GraphReport]
    config: str | None
    warnings: list[str]


def inspect(archive: Archive[Manifest]) -> InspectionReport:
    """Describes an open archive. Weights are not read, unless they are compressed MindIR files."""
    warnings = list(archive.warnings)
    return InspectionReport(
        path=str(archive.path),
        format=archive.format,
        archive_size=archive.path.stat().st_size if archive.path.is_file() else 0,
        unpacked_size=archive.unpacked_size,
        manifest=archive.manifest.to_dict(),
        files=[_file(archive, member) for member in sorted(archive.files, key=lambda member: member.path)],
        graphs=_graphs(archive, warnings),
        config=_config(archive, warnings),
        warnings=warnings,
    )


def _file(archive: Archive[Manifest], member: ArchiveMember) -> FileReport:
    entry = archive.manifest.files.get(member.path)
    return FileReport(member.path, member.size, entry.sha256 if entry else None)


def _graphs(archive: Archive[Manifest], warnings: list[str]) -> list[GraphReport]:
    graphs = []
    for member in archive.files:
        if member.path.endswith(".mindir"):
            try:
                graphs.append(_graph(archive, member))
            except MindIRError as error:
                warnings.append(str(error))
    return graphs


def _graph(archive: Archive[Manifest], member: ArchiveMember) -> GraphReport:
    with archive.view(member) as (data, start, end):
        found = parse_signature(data, member.path, (start, end))
    return GraphReport(
        path=member.path,
        inputs=[_tensor(spec) for spec in found.inputs],
        outputs=[_tensor(spec) for spec in found.outputs],
        operators=sorted(found.op_types),
        producer=f"{found.producer} {found.producer_version}".strip(),
    )


def _tensor(spec: TensorSpec) -> TensorReport:
    return TensorReport(spec.name, spec.dtype, spec.kserve_datatype, list(spec.shape))


def _config(archive: Archive[Manifest], warnings: list[str]) -> str | None:
    name = archive.manifest.model.config_file
    if not name:
        return None
    data = archive.read(name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, Path(name).name)
        file.write_bytes(data)
        try:
            warnings += check_config(file)
        except PackError as error:
            warnings.append(str(error).replace(str(file), name))
    return data.decode("utf-8", "replace")
