"""Which handlers overlap, and what is said of the others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from msx_core.config.keys import ModelKeys
from msx_core.overlap import sequential_reason, steps_of
from msx_core.resolve import resolve_object
from msx_core.steps import three_steps
from msx_sdk import Handler


class Careful(Handler):
    overlap = True

    def preprocess(self, data: Any) -> Any:
        return data


class Inherits(Careful):
    labels = ("a", "b")


class Infers(Careful):
    def inference(self, inputs: Any) -> Any:
        return inputs


class SaysIt(Infers):
    overlap = True


class TakesItBack(Careful):
    overlap = False


class OwnHandle(Careful):
    overlap = True

    def handle(self, data: Any, context: Any) -> Any:
        return data


class Assigns(Careful):
    def __init__(self) -> None:
        self.postprocess = str  # type: ignore[method-assign, assignment]


class Streams(Careful):
    overlap = True

    def handle(self, data: Any, context: Any) -> Iterator[Any]:
        yield data


class Awaits(Careful):
    overlap = True

    async def handle(self, data: Any, context: Any) -> Any:
        return data


class AwaitsAndYields(Careful):
    overlap = True

    async def handle(self, data: Any, context: Any) -> AsyncGenerator[Any, None]:
        yield data


class ProfilesItself(Careful):
    overlap = True

    def sequential_reason(self) -> str:
        return "a profiler runs"


class OfAnotherBase:
    """As TorchServe's handlers are."""

    overlap = True

    @three_steps("HandlerTime")
    def handle(self, data: Any, context: Any) -> Any:
        return data


class AsksElsewhere(OfAnotherBase):
    overlap = True

    @three_steps("HandlerTime", ("preprocess", "_infer", "postprocess"), ("_is_explain",))
    def handle(self, data: Any, context: Any) -> Any:
        return data

    def _infer(self, data: Any) -> Any:
        return data

    def _is_explain(self) -> bool:
        return False


class OwnExplain(AsksElsewhere):
    overlap = True

    def _is_explain(self) -> bool:
        return True


class OwnInfer(AsksElsewhere):
    def _infer(self, data: Any) -> Any:
        return data


UNSAID = "neither model-config.yaml nor the class {} says overlap"
NOT_STEPS = "its handle() is not that of a base class with preprocess, inference and postprocess"
OWN_STEP = "Infers overrides inference(), which may keep a request on self"


@pytest.mark.parametrize(
    ("handler", "keys", "reason"),
    [
        (Careful, {}, ""),
        (Inherits, {}, ""),
        (SaysIt, {}, ""),
        (OfAnotherBase, {}, ""),
        (Handler, {"overlap": True}, ""),
        (Infers, {"overlap": True}, ""),
        (Handler, {}, UNSAID.format("Handler")),
        (TakesItBack, {}, UNSAID.format("TakesItBack")),
        (Careful, {"overlap": False}, "model-config.yaml has overlap: false"),
        (Infers, {}, OWN_STEP),
        (Assigns, {}, "its postprocess() is set on the object, which may keep a request on self"),
        (AsksElsewhere, {}, ""),
        (OwnExplain, {}, "OwnExplain overrides _is_explain(), which its handle() calls"),
        (OwnExplain, {"overlap": True}, "OwnExplain overrides _is_explain(), which its handle() calls"),
        (OwnInfer, {}, "OwnInfer overrides _infer(), which may keep a request on self"),
        (OwnInfer, {"overlap": True}, ""),
        (OwnHandle, {"overlap": True}, NOT_STEPS),
        (Streams, {"overlap": True}, "its handle() returns lists, one after the other"),
        (Awaits, {"overlap": True}, "its handle() returns a list, once awaited"),
        (AwaitsAndYields, {"overlap": True}, "its handle() returns lists, one after the other, each awaited"),
        (ProfilesItself, {}, "a profiler runs"),
        (ProfilesItself, {"overlap": True}, "a profiler runs"),
        (Careful, {"continuous_batching": True}, "continuousBatching calls the handler once a step"),
        (
            Careful,
            {"sequence_batching": True, "max_num_sequence": 2, "sequence_max_idle_msec": 1, "overlap": True},
            "a request of a sequence needs the state that the request before it leaves",
        ),
    ],
)
def test_why_batches_run_one_after_the_other(handler: type[Any], keys: dict[str, Any], reason: str) -> None:
    assert sequential_reason(resolve_object(handler()), ModelKeys(**keys)) == reason


def test_groups_and_envelopes_do_not_overlap() -> None:
    careful, keys = resolve_object(Careful()), ModelKeys(overlap=True)
    assert sequential_reason(careful, keys, world_size=2) == "the ranks of its group make each call together"
    assert sequential_reason(careful, keys, envelope="json") == "service_envelope=json encloses each call"


def test_a_function_has_no_steps() -> None:
    def handle(data: Any, context: Any) -> Any:
        return data

    assert sequential_reason(resolve_object(handle), ModelKeys(overlap=True)) == NOT_STEPS


def test_the_metric_of_a_handle() -> None:
    steps = [steps_of(resolve_object(handler)) for handler in (Careful(), OfAnotherBase())]
    assert [one and one.metric for one in steps] == ["", "HandlerTime"]
