"""Which key a request needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from msx_frontend.http.call import Call
from msx_frontend.http.targets import target_of
from msx_frontend.tokens import KINDS, Kind

PROBES = frozenset({"/livez", "/readyz"})
OPEN_PATHS = PROBES | {"/api-description"}
"""They tell nothing that is secret."""

MANAGEMENT = frozenset({"models", "token", "workflows"})
"""First segments of the paths that manage."""


class ChecksKeys(Protocol):
    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> None: ...


class Gate:
    """`kinds` says by which keys a request may pass: one is enough, and none is needed where there are none."""

    def __init__(
        self,
        tokens: ChecksKeys,
        kinds: Callable[[Call], tuple[Kind, ...]],
        plugins: Mapping[str, tuple[Kind, ...]] = MappingProxyType({}),
    ) -> None:
        """`plugins`: the same for the paths of plugins, by their first segments."""
        self._tokens, self._kinds, self._plugins = tokens, kinds, plugins

    def check(self, call: Call) -> None:
        """Raises InvalidKey."""
        if call.path in OPEN_PATHS or (call.path == "/" and call.method == "OPTIONS"):
            return
        own = self._plugins.get(call.path.split("/", 2)[1])
        if kinds := self._kinds(call) if own is None else own:
            self._tokens.check_any(kinds, call.authorization)


def inference_keys(call: Call) -> tuple[Kind, ...]:
    return ("inference",)


def management_keys(call: Call) -> tuple[Kind, ...]:
    """/token looks at its key itself."""
    return () if call.path == "/token" else ("management",)


def merged_keys(call: Call) -> tuple[Kind, ...]:
    """Of one listener for both: the key of the call's side, and either where both sides have it."""
    if target_of(call.path) is not None or call.path.startswith("/wfpredict/"):
        return ("inference",)
    if call.path.split("/", 2)[1] in MANAGEMENT:
        return management_keys(call)
    return KINDS
