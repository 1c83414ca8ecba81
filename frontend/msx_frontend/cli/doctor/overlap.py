"""The models of the start whose preprocess and postprocess will run beside inference, and why those of others will not.
Nothing of a handler is imported."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msx_archiver.archive import Archive
from msx_archiver.errors import ArchiveError
from msx_archiver.outline import SourceUnknownError
from msx_archiver.overlap import known_overlap
from msx_archiver.reader import open_archive
from msx_core.config import ConfigError, ModelConfig, parse_model_config
from msx_core.manifest import Manifest
from msx_core.safe_yaml import parse_yaml
from msx_core.start_errors import StartError
from msx_frontend.archives.model_store import ArchiveFolder
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.config.server_config import ServerConfig
from msx_frontend.findings import Finding, ok
from msx_frontend.models.startup.arguments import expand

NAME = "overlap"
MOST_READ = 32
"""Archives."""


def check_overlap(machine: Machine) -> Iterator[Finding]:
    """Leave out what cannot be read: that is a finding of other checks, or of the start."""
    archives = _archives(machine.config)
    for name, path in islice(archives, MOST_READ):
        try:
            with open_archive(path) as archive:
                yield from _of_archive(name or archive.manifest.model.model_name or path.name, archive, machine.config)
        except (ArchiveError, ConfigError, OSError):
            continue
    if next(archives, None) is not None:
        yield ok(NAME, f"only the first {MOST_READ} archives were read: describe says it of each model that is loaded")


def _archives(config: ServerConfig) -> Iterator[tuple[str | None, Path]]:
    store = ArchiveFolder(config.model_store.resolve())
    for model in config.load_models:
        try:
            found = expand(model, store)
        except (StartError, OSError):
            continue
        yield from ((name, place) for name, place in found if isinstance(place, Path))


def _of_archive(name: str, archive: Archive[Manifest], server: ServerConfig) -> Iterator[Finding]:
    """One for each stage, if the model has some. Raises ArchiveError, ConfigError."""
    model = archive.manifest.model
    mapping = parse_yaml(archive.read(model.config_file)) if model.config_file else None
    config, _ = parse_model_config({} if mapping is None else mapping)
    if (pipeline := config.pipeline) is not None:
        stages = [(f"{name}/{stage.name}", stage.handler, stage.config) for stage in pipeline.stages.values()]
    else:
        stages = [(name, model.handler or server.default_service_handler or "", config)]
    for label, handler, settings in stages:
        yield ok(NAME, f"{label}: {_told(archive, handler, settings, server.service_envelope or '')}")


def _told(archive: Archive[Manifest], handler: str, config: ModelConfig, envelope: str) -> str:
    try:
        known = known_overlap(archive, handler, config, envelope)
    except SourceUnknownError as error:
        return f"known once a worker has loaded it, and then in describe: {error}"
    if known.sequential:
        return f"batches run one after the other: {known.sequential}"
    later = ", unless the handler finds a reason against it as it is loaded" if known.may_change else ""
    return f"preprocess and postprocess run beside inference{later}"
