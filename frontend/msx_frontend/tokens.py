"""Token authorization: three keys in a file that only the server's user can read.

File and headers are TorchServe's: `{"management": {"key", "expiration time"}, "inference": {…}, "API": {"key"}}`.
The API key gives nothing but new keys of the other two kinds. Keys are never logged.
"""

import base64
import fcntl
import hmac
import json
import os
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Literal

from msx_archiver.room import why
from msx_frontend.errors import InvalidKey
from msx_frontend.start_errors import StartError

Kind = Literal["inference", "management"]
KINDS: tuple[Kind, ...] = ("management", "inference")

_BEARER = re.compile(r"bearer\s+(\S+)", re.IGNORECASE)
"""RFC 9110, 11.1: the name of a scheme is the same in any case."""
_ATTEMPTS = 100
_REFUSED = "Token {} failed. Token either incorrect, expired, or not provided correctly"


class TokenFileError(StartError):
    """The key file cannot be written, or belongs to another running server; the message names it."""


@dataclass(frozen=True)
class _Key:
    text: str = field(repr=False)
    expires: float | None = None  # seconds since the epoch

    def fits(self, given: bytes, now: float) -> bool:
        same = hmac.compare_digest(given, self.text.encode())
        return same and (self.expires is None or now < self.expires)

    def as_json(self) -> dict[str, str]:
        if self.expires is None:
            return {"key": self.text}
        moment = datetime.fromtimestamp(self.expires, timezone.utc).isoformat(timespec="milliseconds")
        return {"key": self.text, "expiration time": moment.replace("+00:00", "Z")}


class Tokens:
    """The keys of one running server. `check` is quick; `open`, `regenerate` and `close` touch the disk."""

    def __init__(self, path: Path, expiration_min: float, clock: Callable[[], float] = time.time) -> None:
        """Writes new keys to `path`. Raises TokenFileError."""
        self.path = path.absolute()
        self._lifetime = expiration_min * 60
        self._clock = clock
        self._change = threading.Lock()
        self._api = _Key(_new_text())
        self._keys: Mapping[Kind, _Key] = {kind: self._new_key() for kind in KINDS}
        self._file = _LockedFile(self.path, self._text(self._keys))

    def check(self, kind: Kind, authorization: str | None) -> None:
        """Raises InvalidKey unless the header carries the valid key of this kind."""
        self.check_any((kind,), authorization)

    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> None:
        """Raises InvalidKey unless the header carries the valid key of one of these kinds."""
        for kind in kinds:
            if self._fits(self._keys[kind], authorization):
                return
        raise InvalidKey(_REFUSED.format("Authorization"))

    def regenerate(self, kind: str | None, authorization: str | None) -> None:
        """A new key of this kind, in the file too; the header must carry the API key.

        Raises InvalidKey, and TokenFileError, after which the old key is still good.
        """
        if kind not in KINDS or not self._fits(self._api, authorization):
            raise InvalidKey(_REFUSED.format("Authentication"))
        with self._change:
            keys = {**self._keys, kind: self._new_key()}
            self._file.replace(self._text(keys))
            self._keys = keys

    def close(self) -> None:
        """Removes the file. May be called again."""
        self._file.close()

    def _fits(self, key: _Key, authorization: str | None) -> bool:
        given = _given(authorization or "")
        return given is not None and key.fits(given, self._clock())

    def _new_key(self) -> _Key:
        return _Key(_new_text(), self._clock() + self._lifetime)

    def _text(self, keys: Mapping[Kind, _Key]) -> str:
        shown = {kind: keys[kind].as_json() for kind in KINDS} | {"API": self._api.as_json()}
        return json.dumps(shown, indent=2) + "\n"


@lru_cache(maxsize=64)
def _given(authorization: str) -> bytes | None:
    """The key in the header, right or wrong."""
    match = _BEARER.fullmatch(authorization)
    return None if match is None else match[1].encode(errors="surrogateescape")


def _new_text() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(6)).decode()


class _LockedFile:
    """A file that is always whole, mode 0600, with a flock on whatever inode its name has at the moment.

    Whoever finds the file unlocked knows that its server has died, and takes it over.
    """

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._fd = -1
        with _errors_named(path, text):
            if not any(self._take(text) for _ in range(_ATTEMPTS)):
                raise TokenFileError(f"{path} keeps changing: other servers are starting in the same folder")

    def replace(self, text: str) -> None:
        with _errors_named(self._path, text):
            fd = self._publish(text, os.replace)
        os.close(self._fd)
        self._fd = fd

    def close(self) -> None:
        if self._fd < 0:
            return
        with suppress(OSError):
            if self._is_named(self._fd):
                self._path.unlink()
        os.close(self._fd)
        self._fd = -1

    def _take(self, text: str) -> bool:
        """False when another process changed the file meanwhile: then look again."""
        try:
            old = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return self._create(text)
        try:
            if not _lock(old):
                raise TokenFileError(
                    f"{self._path} belongs to a server that is running: stop it, or start this one in another folder"
                )
            if not self._is_named(old):
                return False
            self._fd = self._publish(text, os.replace)
            return True
        finally:
            os.close(old)

    def _create(self, text: str) -> bool:
        try:
            self._fd = self._publish(text, os.link)  # unlike a rename, it never replaces another server's file
        except FileExistsError:
            return False
        return True

    def _publish(self, text: str, move: Callable[[str, Path], None]) -> int:
        """A new file, written and locked before it gets its name."""
        fd, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            _lock(fd)
            os.write(fd, text.encode())
            move(temporary, self._path)
        except OSError:
            os.close(fd)
            raise
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        return fd

    def _is_named(self, fd: int) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(fd), os.lstat(self._path))
        return False


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _errors_named(path: Path, text: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise TokenFileError(f"{path}: the key file cannot be written: {why(exc, path, len(text))}") from exc
