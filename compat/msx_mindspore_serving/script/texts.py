"""Loads the language model of a start script of llm-serving."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec

from msx_archiver.errors import ArchiveError
from msx_archiver.llm_serving.config import checked
from msx_archiver.llm_serving.model import imported_model
from msx_archiver.llm_serving.packing import link_imported
from msx_archiver.llm_serving.report import report
from msx_core.service_errors import ServiceError
from msx_frontend.embedding import Management, Registration
from msx_mindspore_serving.script.channel import CommandError

log = logging.getLogger("msx.script")


class LoadText(msgspec.Struct, frozen=True):
    """The members of a `ServingConfig`."""

    config: dict[str, Any]


class ScriptTexts:
    """`store` is a folder of this server alone."""

    def __init__(self, management: Management, store: Path) -> None:
        self._management, self._store = management, store

    async def load(self, wanted: LoadText) -> None:
        """Returns when the model answers. Raises CommandError."""
        try:
            folder = await asyncio.to_thread(self._linked, wanted.config)
            await self._management.register_from(
                folder,
                Registration(url=str(folder), model_name=folder.name, initial_workers=1, synchronous=True),
            )
        except (ServiceError, ArchiveError, OSError) as error:
            raise CommandError("text", getattr(error, "message", None) or str(error)) from None

    def _linked(self, given: dict[str, Any]) -> Path:
        """Raises ArchiveError, OSError."""
        config = checked(given, "the script's configuration")
        for line in report(config, given, huggingface=config.weights is not None):
            log.info("%s", line)
        return link_imported(imported_model(config, config.weights), self._store / config.name)
