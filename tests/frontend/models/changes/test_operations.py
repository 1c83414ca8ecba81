"""Needs of language-model requests besides predictions: operations, and only where they are offered."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.service_errors import NotOffered, Overloaded, ServiceUnavailable
from msx_frontend.job import PREDICT
from msx_frontend.models.describe import describe
from msx_frontend.workers.predict_frames import PredictFrames
from msx_protocol import FrameReader, Predict, ToWorker
from msx_sdk.generation import EMBED, GENERATE, TOKENIZE, Capabilities
from tests.frames import fed
from tests.frontend.harness import FakeGroup, Harness, in_harness
from tests.frontend.jobs import make_job
from tests.phrases import no_worker
from tests.retry import told_wait


@pytest.mark.parametrize(("kind", "operation"), [(PREDICT, ""), (GENERATE, GENERATE), (EMBED, EMBED)])
def test_the_worker_is_told_the_operation(kind: str, operation: str) -> None:
    written: list[bytes | bytearray] = []
    frames = PredictFrames(lambda *buffers: written.extend(buffers))
    frames.add([make_job(kind=kind)], 1, 0)
    frames.flush()
    reader: FrameReader[ToWorker] = FrameReader(ToWorker)
    message = fed(reader, b"".join(written))[0][0]
    assert isinstance(message, Predict)
    assert message.requests[0].operation == operation


def test_an_operation_that_is_not_offered(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.offers["m"] = Capabilities(generate=True, max_best_of=3)
        await harness.register("m")
        await harness.register("plain")
        harness.submit("m", kind=GENERATE)
        harness.submit("plain", kind=PREDICT)
        with pytest.raises(NotOffered, match='Model "m" does not tokenize text: its handler offers no such operation'):
            harness.submit("m", kind=TOKENIZE)
        with pytest.raises(NotOffered, match='Model "plain" does not generate text'):
            harness.submit("plain", kind=GENERATE)
        assert describe(harness.registry.find("m"))["capabilities"] == {"generate": True, "max_best_of": 3}
        assert "capabilities" not in describe(harness.registry.find("plain"))

    in_harness(tmp_path, test)


def test_a_model_that_has_not_told_yet(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await harness.register("m", synchronous=False)
        with pytest.raises(ServiceUnavailable, match='Model "m" is still loading') as refused:
            harness.submit("m", kind=GENERATE)
        assert told_wait(dict(refused.value.headers))
        await harness.register("n", initial_workers=0)
        with pytest.raises(ServiceUnavailable, match=no_worker("n")):
            harness.submit("n", kind=GENERATE)

    in_harness(tmp_path, test)


def test_a_full_queue_is_told_from_a_missing_worker(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="jobQueueSize: 1")
        harness.submit("m")
        harness.submit("m")
        with pytest.raises(Overloaded, match="the queue is full: jobQueueSize is 1"):
            harness.submit("m")

    in_harness(tmp_path, test)
