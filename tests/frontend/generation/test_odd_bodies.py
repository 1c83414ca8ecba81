"""Bodies in which one value is of an odd kind: each is answered or refused, by no fault of the server."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.frontend.generation.rich_bodies import RICH
from tests.frontend.generation.speaker import Speaker, words
from tests.loops import run

ODD: tuple[Any, ...] = (None, True, 3, -1.5, 10**30, "x", [], [3], [[]], {}, {"a": [3]}, [{"type": 3}])
EXAMPLES = {
    route.path: route.example
    for family in Speaker().families
    for route in family.routes
    if route.method == "POST" and isinstance(route.example, dict) and "{" not in route.path
}
"""The bodies that /openapi.json shows."""
BODIES: dict[str, dict[str, Any]] = {**EXAMPLES, **RICH}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values within."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield from places(one, (*path, key))


def changed(body: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    body = copy.deepcopy(body)
    within: Any = body
    for key in path[:-1]:
        within = within[key]
    within[path[-1]] = value
    return body


@pytest.mark.parametrize("path", BODIES)
def test_an_odd_value_is_no_fault_of_the_server(path: str, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> list[tuple[Any, ...]]:
        speaker = Speaker([words("a")])
        body = BODIES[path]
        return [
            (place, odd, exchange.body)
            for place in places(body)
            for odd in ODD
            if b"Internal error" in (exchange := await speaker.begin(path, changed(body, place, odd)).finish()).body
        ]

    with caplog.at_level(logging.CRITICAL):
        assert run(test()) == []
