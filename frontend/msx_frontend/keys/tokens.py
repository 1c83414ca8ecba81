"""The keys of one running server, and the check of requests.

Generated keys are in TorchServe's file; an operator can give others (`keys/api_keys_file.py`). A key of the kind
API is for new keys of the other two kinds only. Values are never logged.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msx_core.service_errors import InvalidKey
from msx_frontend.keys.generated_keys import API, GeneratedKeys
from msx_frontend.keys.key import KINDS, Key, digest_in
from msx_frontend.keys.locked_file import TokenFileError
from msx_net.keys import Kind
from msx_net.model_names import ModelNames

_REFUSED = "Token {} failed. Token either incorrect, expired, or not provided correctly"


class Tokens:
    """Checks do not block; `regenerate`, `give` and `close` may wait for the disk or for each other."""

    def __init__(
        self,
        path: Path,
        expiration_min: float,
        clock: Callable[[], float] = time.time,
        *,
        keep: bool = False,
        follows: bool = False,
        names: ModelNames | None = None,
    ) -> None:
        """Writes keys to `path`; `expiration_min` is 0 for never, `keep` and `follows`: see GeneratedKeys; `names` has
        aliases, by which the operator's keys know their models, too. Raises TokenFileError."""
        self._clock = clock
        self._names = names or ModelNames()
        self._change = threading.Lock()
        self._made = GeneratedKeys(path, expiration_min * 60 or math.inf, clock, keep=keep, follows=follows)
        self._given: list[Key] = []
        self._keys: dict[bytes, Key] = {}
        self._index()

    @property
    def path(self) -> Path:
        return self._made.path

    def check(self, kind: Kind, authorization: str | None) -> Key:
        """Raises InvalidKey unless the header carries a valid key of this kind."""
        return self.check_any((kind,), authorization)

    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> Key:
        """Raises InvalidKey unless the header carries a valid key of one of these kinds."""
        key = self._keys.get(digest_in(authorization))
        if key is None or self._clock() >= key.until or key.kinds.isdisjoint(kinds):
            raise InvalidKey(_REFUSED.format("Authorization"))
        return key

    def named(self, name: str) -> Key:
        """The operator's key of this name. Raises InvalidKey."""
        key = next((key for key in self._given if key.name == name), None)
        if key is None or self._clock() >= key.until:
            raise InvalidKey(f'The key "{name}" was withdrawn.')
        return key

    def regenerate(self, kind: str | None, authorization: str | None) -> Key:
        """Replace the generated key of this kind. The header must have an API key, which is returned.

        Raises InvalidKey, TooManyRequests, and TokenFileError, after which the old key is still valid.
        """
        key = self._keys.get(digest_in(authorization))
        known = next((one for one in KINDS if one == kind), None)
        if known is None or key is None or API not in key.kinds or self._clock() >= key.until:
            raise InvalidKey(_REFUSED.format("Authentication"))
        key.take()
        with self._change:
            self._made.renew(known).until = 0.0
            self._index()
        return key

    def give(self, keys: Iterable[Key]) -> None:
        """Replace the operator's keys. A key that did not change keeps the count of its requests."""
        with self._change:
            known = {key.digest: key for key in self._given}
            given = [_renewed(known.get(key.digest), key) for key in keys]
            kept = {id(key) for key in given}
            for key in given:
                key.names = self._names
            for old in self._given:
                if id(old) not in kept:
                    old.until = 0.0
            self._given = given
            self._index()

    def close(self) -> None:
        """Remove the file, unless it is kept. May be called again."""
        self._made.close()

    def leave(self) -> None:
        """Let another server have the file. The keys are valid here, too."""
        self._made.leave()

    def _index(self) -> None:
        self._keys = {key.digest: key for key in (*self._given, *self._made.keys.values())}


def _renewed(old: Key | None, new: Key) -> Key:
    return old if old is not None and old.same_as(new) else new


__all__ = ["TokenFileError", "Tokens"]
