"""MSX asks vLLM's engine for the same as vLLM's own server does, and answers the same texts."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from msx_core.generation.wire import encode
from msx_sdk.generation import SamplingDefaults
from tests.frontend.generation.speaker import ALL, Speaker, words
from tests.loops import run as run_loop
from tests.vllm.request_bodies import BODIES, DEFAULTS, MODEL, Body
from tests.vllm.served import NEEDED, PYTHON
from tests.vllm.test_real import run
from tests.vllm.tiny_model import make_tiny_model

OFFERED = msgspec.structs.replace(ALL, sampling=SamplingDefaults(**DEFAULTS))  # type: ignore[arg-type]


def asked_of_the_worker(body: Body) -> list[str]:
    """Messages that the frontend makes of a request, as hexadecimal."""

    count = body.members.get("n", 1)

    async def ask() -> Speaker:
        texts = [words("a", index=at, last=at == count - 1) for at in range(count)]
        speaker = Speaker([[delta for text in texts for delta in text]], {MODEL: OFFERED})
        exchange = await speaker.ask(body.path, body.members)
        assert exchange.status == 200, (body.name, exchange.body)
        return speaker

    return [encode(message).hex() for message in run_loop(ask()).asked]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.name)
def test_a_request_is_one_that_msx_takes(body: Body) -> None:
    assert asked_of_the_worker(body)


@pytest.mark.long
@pytest.mark.skipif(not PYTHON, reason=NEEDED)
@pytest.mark.timeout(900)
def test_the_engine_is_asked_for_the_same(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "model")
    (folder / "generation_config.json").write_text(json.dumps(DEFAULTS))
    asked = [{"name": it.name, "path": it.path, "body": it.members, "ours": asked_of_the_worker(it)} for it in BODIES]
    (tmp_path / "requests.json").write_text(json.dumps(asked))
    assert run("both", folder, tmp_path) == []
