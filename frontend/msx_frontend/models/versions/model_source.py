"""The settings that a version is started with: from its archive, its registration and the server's defaults."""

import logging
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from msx_archiver.cache import UnpackedModel
from msx_core.config import ModelConfig, StageConfig
from msx_core.servable_start import ServableStart
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.config import ServerConfig
from msx_frontend.management_errors import InvalidModel
from msx_frontend.models.names import check_names
from msx_frontend.models.registration import Registration
from msx_frontend.models.versions.model_settings import model_settings

log = logging.getLogger("msx.management")


@dataclass(frozen=True)
class ModelSource:
    """The origin of a version, and the settings that it is started with."""

    name: str
    version: str
    url: str
    digest: str
    model_dir: Path
    handler: str
    manifest: dict[str, Any]
    config: ModelConfig
    options: dict[str, Any] = field(default_factory=dict)
    """The options of the registration, which a restarted server uses again."""
    at_startup: bool = False
    workflow: str = ""
    """The workflow whose node this is, or "". A node that is a function has no `url`."""
    stage_of: str = ""
    """The model whose stage this is, or ""; then `name` is the model's, a slash, and the stage's."""
    passes_on: bool = False
    """A stage whose results another stage is given."""
    servable: ServableStart | None = None
    """Servable of a start script."""

    @property
    def from_older_server(self) -> bool:
        """Whether it is remembered from a server that did not compare rows at warm-up, or from a snapshot."""
        return self.at_startup and not self.options.get("rows_compared", False)

    @property
    def model(self) -> str:
        """The name of the model, which a stage has of the model that it belongs to."""
        return self.stage_of or self.name

    @cached_property
    def archive(self) -> ArchiveUrl:
        return ArchiveUrl.split(self.url)


def make_source(archive: Path, unpacked: UnpackedModel, wanted: Registration, server: ServerConfig) -> ModelSource:
    """Raises InvalidModel for settings that are wrong, or missing in both the archive and the registration."""
    model = unpacked.manifest.model
    runtime = wanted.runtime or unpacked.manifest.runtime
    config = model_settings(archive, unpacked, wanted, server)
    source = ModelSource(
        name=_name(archive, unpacked, wanted),
        version=model.model_version,
        url=wanted.url,
        digest=unpacked.digest,
        model_dir=unpacked.path,
        handler="" if config.stages else _handler(archive, unpacked, wanted, server),
        manifest={**unpacked.manifest.to_dict(), "runtime": runtime},
        config=config,
        options=wanted.to_dict(),
        at_startup=wanted.at_startup,
        servable=wanted.servable,
    )
    check_names(source.name, source.version)
    if runtime == "LSP":
        log.warning("%s: runtime LSP means C++, and workers are Python: its handler must be too", archive.name)
    return source


def stage_source(source: ModelSource, stage: StageConfig, *, passes_on: bool) -> ModelSource:
    """Source that a stage of the model is started from."""
    files = {"handler": stage.handler, "serializedFile": stage.serialized_file, "modelFile": stage.model_file}
    manifest = {**source.manifest.get("model", {}), **{key: file for key, file in files.items() if file}}
    return replace(
        source,
        name=f"{source.name}/{stage.name}",
        handler=stage.handler,
        manifest={**source.manifest, "model": manifest},
        config=stage.config,
        stage_of=source.name,
        passes_on=passes_on,
    )


def _name(archive: Path, unpacked: UnpackedModel, wanted: Registration) -> str:
    name = wanted.model_name or unpacked.manifest.model.model_name
    if not name:
        raise InvalidModel(
            f"Model name is not defined. The manifest of {archive.name} has none: give one with model_name."
        )
    return name


def _handler(archive: Path, unpacked: UnpackedModel, wanted: Registration, server: ServerConfig) -> str:
    """TorchServe's order."""
    handler = wanted.handler or unpacked.manifest.model.handler or server.default_service_handler
    if not handler:
        raise InvalidModel(
            f"The manifest of {archive.name} names no handler: give one with handler, or default_service_handler in "
            "the server's configuration."
        )
    return handler
