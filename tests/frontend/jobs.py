"""Jobs for the tests of the frontend, and a sink that remembers what it is told."""

from __future__ import annotations

from typing import Any

from msx_core.service_errors import ServiceError
from msx_frontend.job import Field, Job


class RecordingSink:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.error: ServiceError | None = None

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self.events.append(status)

    def chunk(self, data: bytes) -> None:
        self.events.append(data)

    def end(self) -> None:
        self.events.append("end")

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self.events += [status, data, "end"] if data else [status, "end"]

    def fail(self, error: ServiceError) -> None:
        self.events.append(error)
        self.error = error


class Listener:
    def __init__(self) -> None:
        self.ended: list[Job] = []

    def jobs_ended(self, jobs: list[Job]) -> None:
        self.ended += jobs


def make_job(name: str = "j", body: bytes = b"", **options: Any) -> Job:
    """A job of model `m`."""
    fields = [Field("body", None, body)]
    headers, sink = options.pop("headers", []), options.pop("sink", RecordingSink())
    return Job(name, "m", options.pop("version", None), fields, headers, sink, **options)


def sink_of(job: Job) -> RecordingSink:
    assert isinstance(job.sink, RecordingSink)
    return job.sink


def error_of(job: Job) -> ServiceError:
    error = sink_of(job).error
    assert error is not None, f"{job.id} has not failed"
    return error
