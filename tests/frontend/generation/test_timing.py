"""`Server-Timing` of language models: where the time of a request's first job went."""

from __future__ import annotations

import pytest

from tests.frontend.generation.speaker import Speaker, words
from tests.loops import run

NAMES = ["parse", "queue", "batch", "handler", "rest"]
BODIES: dict[str, dict[str, object]] = {
    "/v1/completions": {"prompt": ["x", "y"]},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
    "/generate": {"inputs": "x"},
}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("stream", [False, True])
def test_who_asks_is_told(path: str, stream: bool) -> None:
    async def test() -> None:
        speaker = Speaker([words("a", "b")])
        body = BODIES[path] if path == "/generate" else BODIES[path] | {"stream": stream}
        told = (await speaker.ask(path, body, **{"x-msx-timing": "1"})).headers["server-timing"]
        spent = dict(part.split(";dur=") for part in told.split(", "))
        assert list(spent) == NAMES
        assert all(float(one) >= 0 for one in spent.values())
        assert "server-timing" not in (await speaker.ask(path, body)).headers

    run(test())


def test_a_refusal_has_none() -> None:
    async def test() -> None:
        reply = await Speaker().ask("/v1/completions", {"prompt": 7}, **{"x-msx-timing": "1"})
        assert (reply.status, "server-timing" in reply.headers) == (400, False)

    run(test())
