"""Which requests a version takes, whatever its workers do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from msx_core.config import ModelConfig
from msx_core.service_errors import RequestCancelled, ServiceUnavailable
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.models.versions.queue import VersionQueue
from msx_frontend.models.versions.schema import VersionSchema
from msx_frontend.models.versions.sleep import Asleep, VersionSleep
from msx_frontend.models.versions.states import ModelState
from msx_frontend.models.versions.status import VersionStatus
from msx_sdk.generation import GENERATE
from tests.frontend.jobs import make_job
from tests.loops import run


class Parts:
    """The supervisor of a version, whose dispatcher keeps what it is given."""

    def __init__(self, may_serve: bool = True, limit: int = 0) -> None:
        self.taken: list[str] = []
        self.failed: list[str] = []
        keep = lambda job: self.taken.append(job.id)  # noqa: E731
        self.dispatcher = SimpleNamespace(submit=keep, pass_on=keep, may_serve=may_serve, waiting=0, groups=[])
        self.dispatcher.fail_all = self.first_load_failed = lambda error: self.failed.append(type(error).__name__)
        self.first_load = SimpleNamespace(failed=self.first_load_failed)
        self.status, self.schema, self.sleep = VersionStatus("m", "1.0"), VersionSchema("m"), VersionSleep("m", list)
        self.replicas = SimpleNamespace(groups=[])
        source = SimpleNamespace(name="m", config=ModelConfig(client_timeout_in_mills=limit))
        self.metrics = ModelMetrics(ServerMetrics(), "m", "1.0")
        self.queue = VersionQueue(cast(Any, self), cast(Any, source), self.metrics)


def test_a_request_is_the_models_and_has_its_time_limit() -> None:
    parts, job = Parts(limit=500), make_job("a")
    parts.queue.submit(job)
    assert parts.taken == ["a"]
    assert job.listener is parts.metrics
    assert job.deadline == job.enqueued + 0.5


def test_an_earlier_deadline_stays() -> None:
    parts, job = Parts(limit=500), make_job()
    job.deadline = job.enqueued + 0.1
    parts.queue.pass_on(job)
    assert job.deadline == job.enqueued + 0.1


def test_a_version_that_leaves_takes_nothing() -> None:
    parts = Parts()
    parts.status.move(ModelState.DRAINING)
    with pytest.raises(ServiceUnavailable, match="is being unregistered and takes no more requests"):
        parts.queue.submit(make_job())
    assert parts.taken == []


def test_a_version_that_sleeps_takes_nothing() -> None:
    parts = Parts()
    parts.sleep.level = 1
    for take in (parts.queue.submit, parts.queue.pass_on):
        with pytest.raises(Asleep):
            take(make_job())
    assert parts.taken == []


def test_an_operation_waits_for_the_first_load_where_a_worker_is_expected() -> None:
    with pytest.raises(ServiceUnavailable, match="is still loading"):
        Parts().queue.submit(make_job(kind=GENERATE))
    parts = Parts(may_serve=False)
    parts.queue.submit(make_job("a", kind=GENERATE))
    assert parts.taken == ["a"], "the dispatcher says why it refuses it"


def test_the_end_of_all_requests() -> None:
    async def call() -> None:
        parts = Parts()
        parts.queue.cancel_all(RequestCancelled())
        assert parts.failed == ["RequestCancelled"] * 2
        await parts.queue.drain(1)
        assert parts.failed[2:] == ["ServiceUnavailable"] * 2, "the first load, and what waits"

    run(call())
