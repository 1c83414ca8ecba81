"""The keys that an operator gives, of the file and the environment, handed on whenever they change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path

from msx_frontend.keys.api_keys_file import KeysFileContent, KeysFileError, parse, read_content
from msx_frontend.keys.entry import SHORT, checked_key
from msx_frontend.keys.key import Key, digest_of
from msx_frontend.start_errors import StartError
from msx_sdk._internal.values import ConfigError

log = logging.getLogger("msx.keys")

VARIABLE = "MSX_API_KEY"
EVERY = 1.0
"""Seconds between two looks at the file. It is read each time: a change within a clock's tick has no other sign."""


class KeyVariableError(StartError):
    """MSX_API_KEY is not a key."""


class OperatorKeys:
    """`give` is told all of them, at the beginning and after each change; it may be called by another thread."""

    def __init__(self, path: Path | None, env: MutableMapping[str, str], give: Callable[[Sequence[Key]], None]) -> None:
        """Takes MSX_API_KEY out of `env`, so that no process inherits it. Raises StartError for what is not a key."""
        self._path = path
        self._give = give
        self._always = _of_variable(env.pop(VARIABLE, "").strip())
        self._seen: KeysFileContent | None = None
        """Good or not."""
        self._said = ""
        self._task: asyncio.Task[None] | None = None
        if path is None:
            give(self._always)
        else:
            self._seen = read_content(path)
            self._use(path, self._seen)

    @property
    def any(self) -> bool:
        """There are some, or there may be."""
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
        """What cannot be used is told once, and the keys that were there stay good."""
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

    def _use(self, path: Path, content: KeysFileContent) -> None:
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
