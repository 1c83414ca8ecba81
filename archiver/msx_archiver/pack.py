"""Pack a model into an archive."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from msx_archiver.copying import Progress, Watch, unwatched
from msx_archiver.errors import PackError
from msx_archiver.formats import FORMATS, RUNTIMES
from msx_archiver.options import PackOptions
from msx_archiver.output import Warn, created_on, errors_named, make, own_version, silent, source_date
from msx_archiver.sources import ModelSources, collect
from msx_archiver.target import SUFFIXES, check_target, place
from msx_archiver.writers import open_writer
from msx_core.manifest import MANIFEST_PATH, Manifest
from msx_core.names import MOST_CHARACTERS, name_problem, short_name, version_problem


def pack(options: PackOptions, *, warn: Warn = silent, watch: Watch = unwatched) -> Path:
    """Makes the archive that the options describe and returns its path; follows torch-model-archiver.

    `warn` is called with one sentence for each warning. With SOURCE_DATE_EPOCH in the environment, the same input gives
    the same bytes. Raises PackError; then nothing is left behind and nothing was replaced.
    """
    check_options(options)
    with TemporaryDirectory(prefix="msx-pack-") as made:
        return archived(options, options.model_name, lambda: collect(options, Path(made)), warn, watch)


def archived(options: PackOptions, name: str, collected: Callable[[], ModelSources], warn: Warn, watch: Watch) -> Path:
    """Makes the archive of this name, without its suffix, of the files that `collected` finds; the options' `output`
    is its whole path instead. Raises PackError."""
    target = place(name, options.export_path, options.output, SUFFIXES[options.archive_format])
    check_target(target, options)
    with errors_named(f"{target} cannot be made", target):
        sources = collected()
        _leave_out(sources, target)
    for sentence in sources.warnings:
        warn(sentence)
    make(target, sources.size, lambda new, progress: _write(new, sources, options, progress), watch)
    return target


def check_options(options: PackOptions) -> None:
    """Raises PackError for a name, a version or a choice that no archive can have."""
    check_name("Model", options.model_name)
    if not options.version:
        raise PackError("The model version is empty; give one with --version.")
    if problem := version_problem(options.version):
        raise PackError(f"Model version {short_name(options.version)} could not be served: it {problem}.")
    for name, value, known in (
        ("--archive-format", options.archive_format, FORMATS),
        ("--runtime", options.runtime, RUNTIMES),
    ):
        if value not in known:
            raise PackError(f"{name} '{value}' is unknown; it must be one of {', '.join(known)}.")


def check_name(what: str, name: str) -> None:
    """Raises PackError, in torch-model-archiver's words for a name with other characters."""
    if problem := name_problem(name):
        kind = "contains special characters" if len(name) <= MOST_CHARACTERS else "is too long"
        raise PackError(f"{what} name {kind}: {short_name(name)}. It {problem}.")


def _leave_out(sources: ModelSources, target: Path) -> None:
    """Leaves out the archive of an earlier run, which `--extra-files .` finds."""
    for path, file in list(sources.files.items()):
        if target.exists() and file.resolve().is_relative_to(target.resolve()):
            del sources.files[path]
            sources.warnings.append(f"--extra-files: {file} is left out, it is what is being made.")


def _write(new: Path, sources: ModelSources, options: PackOptions, progress: Progress) -> None:
    moment = source_date()
    writer = open_writer(options.archive_format, new, options.model_name, moment, progress)
    try:
        files = {path: writer.add(path, sources.files[path]) for path in sorted(sources.files)}
        manifest = Manifest(
            model=sources.model,
            created_on=created_on(moment),
            runtime=options.runtime,
            archiver_version=own_version(),
            files=files,
        )
        # The manifest comes last, because only now the digests are known.
        writer.add_bytes(MANIFEST_PATH, manifest.to_json())
    finally:
        writer.close()
