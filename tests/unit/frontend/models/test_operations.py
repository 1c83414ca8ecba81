"""What language-model requests need besides predictions: operations, and only where they are offered."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_frontend.errors import NotOffered, Overloaded, ServiceUnavailable
from msx_frontend.job import PREDICT
from msx_frontend.models.describe import describe
from msx_frontend.workers.in_flight import InFlight
from msx_protocol import FrameReader, Predict, ToWorker
from msx_sdk.generation import EMBED, GENERATE, TOKENIZE, Capabilities
from tests.frames import fed
from tests.retry import told_wait
from tests.unit.frontend.house import FakeGroup, House, in_a_house
from tests.unit.frontend.jobs import make_job


@pytest.mark.parametrize(("kind", "operation"), [(PREDICT, ""), (GENERATE, GENERATE), (EMBED, EMBED)])
def test_the_worker_is_told_the_operation(kind: str, operation: str) -> None:
    frame = b"".join(InFlight().add([make_job(kind=kind)], 0, at_once=True))
    reader: FrameReader[ToWorker] = FrameReader(ToWorker)
    message = fed(reader, frame)[0][0]
    assert isinstance(message, Predict)
    assert message.requests[0].operation == operation


def test_an_operation_that_is_not_offered(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        FakeGroup.offers["m"] = Capabilities(generate=True, max_best_of=3)
        await house.register("m")
        await house.register("plain")
        house.submit("m", kind=GENERATE)
        house.submit("plain", kind=PREDICT)
        with pytest.raises(NotOffered, match='Model "m" does not tokenize text: its handler offers no such operation'):
            house.submit("m", kind=TOKENIZE)
        with pytest.raises(NotOffered, match='Model "plain" does not generate text'):
            house.submit("plain", kind=GENERATE)
        assert describe(house.registry.find("m"))["capabilities"] == {"generate": True, "max_best_of": 3}
        assert "capabilities" not in describe(house.registry.find("plain"))

    in_a_house(tmp_path, test)


def test_a_model_that_has_not_told_yet(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        FakeGroup.loading.add("m")
        await house.register("m", synchronous=False)
        with pytest.raises(ServiceUnavailable, match='Model "m" is still loading') as refused:
            house.submit("m", kind=GENERATE)
        assert told_wait(dict(refused.value.headers))
        await house.register("n", initial_workers=0)
        with pytest.raises(ServiceUnavailable, match='Model "n" has no worker'):
            house.submit("n", kind=GENERATE)

    in_a_house(tmp_path, test)


def test_a_full_queue_is_told_from_a_missing_worker(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        await house.register("m", config="jobQueueSize: 1")
        house.submit("m")
        house.submit("m")
        with pytest.raises(Overloaded, match="the queue is full: jobQueueSize is 1"):
            house.submit("m")

    in_a_house(tmp_path, test)
