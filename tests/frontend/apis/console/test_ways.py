"""Models as the playground asks for them: each with the ways in which it can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.generation import Capabilities
from msx_frontend.apis.console.family import playground
from tests.frontend.apis.console.consoles import open_console
from tests.loops import run
from tests.net.http.client import FakeAccessLog, ask
from tests.net.http.exchanges import exchange_of

OFFERED = {
    "classifier": (Capabilities(classify=True), ["predict"]),
    "completes": (Capabilities(generate=True), ["predict"]),
    "embeds": (Capabilities(embed=True), ["embed", "predict"]),
    "images": (Capabilities(), ["predict"]),
    "not-loaded": (None, ["predict", "chat", "embed"]),
    "speaks": (Capabilities(generate=True, chat=True), ["chat", "predict"]),
    "speaks-and-embeds": (Capabilities(generate=True, chat=True, embed=True), ["chat", "embed", "predict"]),
}
"""Capabilities of a model, and its ways, the best first."""


@pytest.mark.parametrize("name", OFFERED)
def test_a_model_is_asked_in_the_ways_that_it_offers(tmp_path: Path, name: str) -> None:
    offered, ways = OFFERED[name]

    async def test() -> None:
        async with open_console(tmp_path) as opened:
            await opened.harness.register(name)
            opened.harness.registry.find(name).schema.capabilities = offered
            shown = await ask(exchange_of(playground(opened.console), log=FakeAccessLog()), "GET", "/playground/models")
            assert shown.json == {"models": [{"name": name, "ways": ways}]}

    run(test())
