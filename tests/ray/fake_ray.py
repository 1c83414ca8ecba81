"""Ray as far as the driver knows it: placement groups and holders that are as the test says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

PLACED = {
    "node_id": "id-a",
    "node": "node-a",
    "address": "192.0.2.1",
    "devices": ["0"],
    "version": "",
    "python": "",
    "platform": "",
}


class Ref:
    """Result of a call to Ray; `done` says whether there is an answer, which may be an error."""

    def __init__(self) -> None:
        self.done = False
        self.answer: Any = None

    def resolve(self, answer: Any) -> None:
        self.done, self.answer = True, answer


class FakeHolder:
    def __init__(self, name: str) -> None:
        self.name = name
        self.killed = False
        self.invited: list[dict[str, Any]] = []
        self.refs = {method: Ref() for method in ("place", "start", "hold")}
        for method in self.refs:
            setattr(self, method, SimpleNamespace(remote=self._called(method)))

    def _called(self, method: str) -> Any:
        def remote(*arguments: Any) -> Ref:
            self.invited += arguments if method == "start" else ()
            return self.refs[method]

        return remote


class FakeRay:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
        self.states: dict[str, str] = {}
        self.removed: list[str] = []
        self.holders: dict[str, FakeHolder] = {}
        self.asked: list[tuple[str, str]] = []
        """Names and strategies of the placement groups that were made."""
        self.options: list[dict[str, Any]] = []
        """Options of the holders."""
        monkeypatch.setattr(module, "ray", self)
        monkeypatch.setattr(module, "placement_group", self._make)
        monkeypatch.setattr(module, "get_placement_group", self._find)
        monkeypatch.setattr(module, "placement_group_table", lambda group: {"state": self.states[group.name]})
        monkeypatch.setattr(module, "remove_placement_group", lambda group: self.removed.append(group.name))
        monkeypatch.setattr(module, "PlacementGroupSchedulingStrategy", lambda group, **options: None)
        self.util = SimpleNamespace(list_named_actors=lambda all_namespaces: [{"name": name} for name in self.holders])

    def _make(self, bundles: list[dict[str, float]], strategy: str, name: str, lifetime: str) -> Any:
        assert lifetime == "detached"
        self.states[name] = "PENDING"
        self.asked.append((name, strategy))
        return SimpleNamespace(name=name, bundle_specs=bundles)

    def _find(self, name: str) -> Any:
        if name not in self.states:
            raise ValueError(name)
        return SimpleNamespace(name=name, bundle_specs=[{"CPU": 1.0}, {"CPU": 1.0}])

    def remote(self, **options: Any) -> Any:
        """The decorator of an actor's class."""

        def made(name: str, **options: Any) -> Any:
            self.options.append(options)
            return SimpleNamespace(remote=lambda: self.holders.setdefault(name, FakeHolder(name)))

        return lambda actor: SimpleNamespace(options=made)

    def get_actor(self, name: str, namespace: str) -> FakeHolder:
        if name not in self.holders:
            raise ValueError(name)
        return self.holders[name]

    def kill(self, holder: FakeHolder, no_restart: bool) -> None:
        holder.killed = True

    def wait(self, refs: list[Ref], num_returns: int, timeout: float) -> tuple[list[Ref], list[Ref]]:
        """As Ray's own, which takes no empty list and no more than `num_returns`."""
        assert refs
        assert timeout == 0, "the driver's thread must not block"
        done = [ref for ref in refs if ref.done][:num_returns]
        return done, [ref for ref in refs if ref not in done]

    def get(self, refs: list[Ref]) -> list[Any]:
        for ref in refs:
            if isinstance(ref.answer, Exception):
                raise ref.answer
        return [ref.answer for ref in refs]
