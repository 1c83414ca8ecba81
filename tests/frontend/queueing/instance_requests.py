"""Requests of several instances, and a sink that keeps their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msx_core.service_errors import ServiceError
from msx_frontend.job import PREDICT, Field
from msx_frontend.queueing.instances import InstanceAnswer, InstanceRequest


class Answers:
    def __init__(self) -> None:
        self.all: list[InstanceAnswer] = []

    def answered(self, answers: Sequence[InstanceAnswer]) -> None:
        assert not self.all, "a request is answered once"
        self.all += answers

    @property
    def bodies(self) -> list[bytes | str]:
        """The body of each answer; of an error its sentence."""
        return [answer.message if isinstance(answer, ServiceError) else answer.body for answer in self.all]


def make_request(id: str, count: int, **options: Any) -> InstanceRequest:
    """Request of model `m`; its jobs are `id`, `id-1`, `id-2`, and so on."""
    fields = [[Field("body", None, b"%d" % at)] for at in range(count)]
    return InstanceRequest(id, "m", options.pop("version", None), fields, [], Answers(), **{"kind": PREDICT, **options})


def answers_of(request: InstanceRequest) -> Answers:
    assert isinstance(request.sink, Answers)
    return request.sink
