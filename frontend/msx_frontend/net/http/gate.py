"""Which key a request needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from msx_frontend.keys.key import KINDS, Key, Kind
from msx_frontend.net.http.head import Head

PROBES = frozenset({"/livez", "/readyz"})
OPEN_PATHS = PROBES | {"/api-description"}
"""They tell nothing that is secret."""

MANAGEMENT = frozenset({"models", "token", "workflows"})
"""First segments of the paths that manage."""


WORKFLOW = "/wfpredict/"
"""Before the name of a workflow, which is asked like a model."""


class ChecksKeys(Protocol):
    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> Key: ...


class Gate:
    """`kinds` says by which keys a request may pass: one is enough, and none is needed where there are none."""

    def __init__(
        self,
        tokens: ChecksKeys,
        kinds: Callable[[Head], tuple[Kind, ...]],
        plugins: Mapping[str, tuple[Kind, ...]] = MappingProxyType({}),
    ) -> None:
        """`plugins`: the same for the paths of plugins, by their first segments."""
        self._tokens, self._kinds, self._plugins = tokens, kinds, plugins

    def check(self, head: Head) -> Key | None:
        """The key by which it passes; None where it needs none. Raises InvalidKey."""
        kinds = self.kinds(head)
        return self.check_any(kinds, head.authorization) if kinds else None

    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> Key:
        """For whoever keeps the `kinds` of a head, if there are any. Raises InvalidKey."""
        return self._tokens.check_any(kinds, authorization)

    def kinds(self, head: Head) -> tuple[Kind, ...]:
        """By which keys this request may pass; none where it needs none."""
        if head.path in OPEN_PATHS or (head.path == "/" and head.method == "OPTIONS"):
            return ()
        own = self._plugins.get(head.path.split("/", 2)[1])
        return self._kinds(head) if own is None else own


def inference_keys(head: Head) -> tuple[Kind, ...]:
    return ("inference",)


def management_keys(head: Head) -> tuple[Kind, ...]:
    """/token looks at its key itself."""
    return () if head.path == "/token" else ("management",)


def merged_keys(head: Head) -> tuple[Kind, ...]:
    """Of one listener for both: the key of the call's side, and either where both sides have it."""
    if head.path.startswith(WORKFLOW):
        return ("inference",)
    if head.path.split("/", 2)[1] in MANAGEMENT:
        return management_keys(head)
    return KINDS
