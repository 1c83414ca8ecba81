"""Requests of several instances, and a sink that keeps their answers."""

from __future__ import annotations

from collections.abc import Sequence

from msx_frontend.errors import ServiceError
from msx_frontend.queueing.instances import InstanceAnswer


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
