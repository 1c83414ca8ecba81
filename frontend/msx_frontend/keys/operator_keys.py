"""The operator's keys, from the file and the environment. The file is read again when it changes."""

import asyncio
import logging
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path

from msx_core.start_errors import StartError
from msx_core.values import ConfigError
from msx_frontend.keys.api_keys_file import KeysFileError, parse, read_content
from msx_frontend.keys.entry import SHORT, checked_key
from msx_frontend.keys.key import Key, digest_of
from msx_frontend.keys.secret_file import FileContent

log = logging.getLogger("msx.keys")

VARIABLE = "MSX_API_KEY"
EVERY = 1.0
"""Seconds between two reads of the file. Its time stamp is not enough: two changes may have the same one."""


class KeyVariableError(StartError):
    """MSX_API_KEY is not a key."""


class OperatorKeys:
    """`give` gets all keys at the beginning and after each change, possibly on another thread."""

    def __init__(self, path: Path | None, env: MutableMapping[str, str], give: Callable[[Sequence[Key]], None]) -> None:
        """Remove MSX_API_KEY from `env`, so that no process inherits it. Raises StartError for a text that is not a
        key."""
        self._path = path
        self._give = give
        self._always = _of_variable(env.pop(VARIABLE, "").strip())
        self._seen: FileContent | None = None
        """The last content that was read, valid or not."""
        self._said = ""
        self._task: asyncio.Task[None] | None = None
        if path is None:
            give(self._always)
        else:
            self._seen = read_content(path)
            self._use(path, self._seen)

    @property
    def any(self) -> bool:
        """Keys exist, or may exist after a change of the file."""
        return self._path is not None or bool(self._always)

    def watch(self) -> None:
        if self._path is not None:
            self._task = asyncio.create_task(self._watch(self._path), name="api-keys-file")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self, path: Path) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await asyncio.to_thread(self.look, path)

    def look(self, path: Path) -> None:
        """Read the file. An error is logged once; the earlier keys stay valid then."""
        try:
            content, said = read_content(path), ""
            if content != self._seen:
                self._seen = content
                self._use(path, content)
        except KeysFileError as error:
            said = str(error)
        if said and said != self._said:
            log.error("%s. The keys that it had before stay as they were.", said)
        self._said = said

    def _use(self, path: Path, content: FileContent) -> None:
        keys, short = parse(path, content.data)
        if any(key.name == one.name or key.digest == one.digest for key in keys for one in self._always):
            raise KeysFileError(f"api_keys_file: {path}: has the key, or the name, of {VARIABLE}")
        self._give([*self._always, *keys])
        if content.warning:
            log.warning("%s", content.warning)
        for name in short:
            log.warning("The key of %s in %s has fewer than %d characters: it can be guessed.", name, path, SHORT)
        log.info("keys of %s: %s", path, ", ".join(f"{key.name} ({_kinds(key)})" for key in keys) or "none")


def _of_variable(text: str) -> list[Key]:
    if not text:
        return []
    try:
        checked_key(text)
    except ConfigError as error:
        raise KeyVariableError(f"{VARIABLE}: {str(error).removeprefix('key: ')}") from None
    if len(text) < SHORT:
        log.warning("%s has fewer than %d characters: it can be guessed.", VARIABLE, SHORT)
    return [Key(digest_of(text), frozenset({"inference"}), VARIABLE)]


def _kinds(key: Key) -> str:
    return ", ".join(sorted(key.kinds))
