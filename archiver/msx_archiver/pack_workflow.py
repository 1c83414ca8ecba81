"""Pack a workflow into a `.war` archive."""

from pathlib import Path

from msx_archiver.copying import Progress, Watch, unwatched
from msx_archiver.errors import PackError
from msx_archiver.extra_files import expand_extra_files
from msx_archiver.output import Warn, created_on, errors_named, make, own_version, silent, source_date
from msx_archiver.pack import check_name
from msx_archiver.python_files import check_module, warnings_of_names
from msx_archiver.sources import FileSet
from msx_archiver.target import WAR, place
from msx_archiver.workflow_options import WorkflowOptions
from msx_archiver.writers import ZipWriter
from msx_core.workflow_manifest import WORKFLOW_MANIFEST_PATH, WorkflowEntry, WorkflowManifest


def pack_workflow(options: WorkflowOptions, *, warn: Warn = silent, watch: Watch = unwatched) -> Path:
    """Makes the archive that the options describe and returns its path; follows torch-workflow-archiver.

    `warn` is called with one sentence for each warning. Raises PackError; then nothing was made or replaced.
    """
    check_name("Workflow", options.workflow_name)
    target = place(options.workflow_name, options.export_path, options.output, (WAR,))
    _check_target(target, force=options.force)
    with errors_named(f"{target} cannot be made", target):
        sources = _collect(options)
    for sentence in sources.warnings:
        warn(sentence)
    make(target, sources.size, lambda new, progress: _write(new, sources, options, progress), watch)
    return target


def _check_target(target: Path, *, force: bool) -> None:
    if target.is_dir():
        raise PackError(f"{target} is a folder; move it away, --force does not overwrite it.")
    if target.exists() and not force:
        raise PackError(f"{target} already exists. Give --force/-f to overwrite it, or -o FILE to make another one.")


def _collect(options: WorkflowOptions) -> FileSet:
    sources = FileSet()
    sources.add([_at_root(options.spec_file)], "--spec-file")
    if options.handler:
        sources.add([_at_root(options.handler)], "--handler")
        check_module(Path(options.handler), "--handler")
    if options.extra_files:
        found, sources.warnings = expand_extra_files(options.extra_files)
        sources.add(found, "--extra-files")
        sources.warnings += warnings_of_names((path for path, _ in found), "--extra-files")
    return sources


def _at_root(name: str) -> tuple[str, Path]:
    return Path(name).name, Path(name)


def _write(new: Path, sources: FileSet, options: WorkflowOptions, progress: Progress) -> None:
    moment = source_date()
    writer = ZipWriter(new, moment, progress)
    try:
        files = {path: writer.add(path, sources.files[path]) for path in sorted(sources.files)}
        manifest = WorkflowManifest(
            created_on=created_on(moment),
            workflow=WorkflowEntry(
                workflow_name=options.workflow_name,
                spec_file=Path(options.spec_file).name,
                handler=Path(options.handler).name if options.handler else None,
            ),
            archiver_version=own_version(),
            files=files,
        )
        writer.add_bytes(WORKFLOW_MANIFEST_PATH, manifest.to_json())
    finally:
        writer.close()
