"""An archive that comes with its registration: put into the model store, registered, and taken away again where the
registration fails."""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from msx_archiver.members import path_problem
from msx_archiver.room import why
from msx_core.request_ids import new_request_id
from msx_core.service_errors import BadRequest
from msx_frontend.archives.suffixes import ARCHIVE_SUFFIXES
from msx_frontend.config import ServerConfig
from msx_frontend.management_errors import Conflict, NotSaved, UploadsDisabled
from msx_frontend.models.model_api import ModelApi, StatusMessage


class Uploads:
    def __init__(self, config: ServerConfig, models: ModelApi) -> None:
        self._config, self._models = config, models

    async def register(self, name: str, data: bytes, values: Mapping[str, str]) -> StatusMessage:
        """Register the archive `data` as the file `name` of the model store, with the parameters of `POST /models`.

        Raises ServiceError; then the file is not in the model store.
        """
        self._check(name, data)
        path = Path(self._config.model_store) / name
        await asyncio.to_thread(_write, path, data)
        try:
            return await self._models.register({**values, "url": name})
        except BaseException:
            await asyncio.shield(asyncio.to_thread(path.unlink, missing_ok=True))
            raise

    def _check(self, name: str, data: bytes) -> None:
        config = self._config
        for key in ("enable_model_api", "console_upload"):
            if not getattr(config, key):
                raise UploadsDisabled(key)
        if path_problem(name) or "/" in name or name.startswith(".") or not name.endswith(ARCHIVE_SUFFIXES):
            suffixes = ", ".join(ARCHIVE_SUFFIXES)
            raise BadRequest(f"{name[:80]!r} is not a name for an archive: it has to end with one of {suffixes}.")
        if not data:
            raise BadRequest("The request has no body: send the archive as it is (curl --data-binary @net.mar).")


def _write(path: Path, data: bytes) -> None:
    """Whole, or not at all; never in place of another file."""
    aside = path.with_name(f".{new_request_id()}.upload")
    try:
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)
    except FileExistsError:
        raise Conflict(
            f"The model store has a file {path.name} already: give the archive another file name, or register that one."
        ) from None
    except OSError as error:
        raise NotSaved(f"The archive cannot be written to the model store: {why(error, path.parent)}.") from None
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
