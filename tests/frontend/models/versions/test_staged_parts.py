"""Workers, status and figures of a version with stages, which it is given those of its stages for."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.models.versions.figures import StagedFigures
from msx_frontend.models.versions.request_counts import RequestCounts
from msx_frontend.models.versions.staged_status import StagedStatus
from msx_frontend.models.versions.staged_workers import StagedWorkers
from msx_frontend.models.versions.states import ModelState

ROW = {
    "msx_queue_depth": 2,
    "msx_queue_oldest_seconds": 1.5,
    "msx_requests_queued": 2,
    "msx_requests_running": 1,
    "msx_kv_cache_utilization": 0.25,
}


def stage(state: ModelState = ModelState.READY, reason: str = "", served: bool = True, **workers: Any) -> Any:
    status = SimpleNamespace(state=state, reason=reason, served=served, shortage=None, last_end=None)
    return SimpleNamespace(status=status, **{"wanted": True, **workers})


def status(**stages: Any) -> StagedStatus:
    return StagedStatus("m", "1.0", cast(Mapping[str, Any], stages))


def test_workers_are_counted_over_all_stages() -> None:
    workers = StagedWorkers([stage(least=1, most=2, ready=1, waiting=0), stage(least=2, most=3, ready=1, waiting=1)])
    assert (workers.least, workers.most, workers.ready, workers.waiting) == (3, 5, 2, 1)


def test_a_request_passes_all_stages_so_that_one_without_workers_is_enough_to_have_none() -> None:
    both = [stage(ready=2, answer=True, expected=True), stage(ready=0, answer=False, expected=True)]
    workers = StagedWorkers(both)
    assert (workers.ready, workers.answer, workers.expected) == (0, False, True)


def test_some_may_be_taken_over_where_those_of_a_stage_may() -> None:
    assert StagedWorkers([stage(adopts=False), stage(adopts=True)]).adopts
    assert not StagedWorkers([stage(adopts=False)]).adopts


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        ((ModelState.READY, ModelState.READY), ModelState.READY),
        ((ModelState.READY, ModelState.LOADING), ModelState.LOADING),
        ((ModelState.DEGRADED, ModelState.LOADING), ModelState.LOADING),
        ((ModelState.WAITING, ModelState.LOADING), ModelState.WAITING),
        ((ModelState.WAITING, ModelState.FAILED), ModelState.FAILED),
    ],
)
def test_its_state_is_the_worst_of_the_stages(states: tuple[ModelState, ModelState], whole: ModelState) -> None:
    found = status(a=stage(states[0]), b=stage(states[1]))
    found.judge()
    assert found.state is whole


def test_what_is_degraded_does_not_load_again() -> None:
    stages = {"a": stage(ModelState.DEGRADED), "b": stage()}
    found = status(**stages)
    found.judge()
    stages["a"].status.state = ModelState.LOADING
    found.judge()
    assert found.state is ModelState.DEGRADED


def test_the_reason_names_the_stage() -> None:
    found = status(a=stage(), b=stage(ModelState.FAILED, "No weights."))
    assert found.reason == "Stage b: No weights."


def test_a_stage_that_wants_no_workers_need_not_have_served() -> None:
    assert status(a=stage(), b=stage(served=False, wanted=False)).served
    assert not status(a=stage(), b=stage(served=False)).served


def test_gauges_are_sums_but_for_requests_which_several_stages_have_at_once() -> None:
    metrics = ModelMetrics(ServerMetrics(), "m", "1.0")
    rows: list[Any] = [SimpleNamespace(gauges=lambda: ROW), SimpleNamespace(gauges=lambda: {**ROW, **OLDER})]
    figures = StagedFigures(("m", "1.0"), metrics, status(), lambda: RequestCounts(3, 1), rows)
    assert figures.gauges() == {
        "msx_queue_depth": 4,
        "msx_queue_oldest_seconds": 7,
        "msx_requests_queued": 3,
        "msx_requests_running": 1,
        "msx_kv_cache_utilization": 0.5,
    }
    assert figures.worker_memory() == figures.device_memory() == []


OLDER = {"msx_queue_oldest_seconds": 7, "msx_kv_cache_utilization": 0.5}
