"""The call of one node for one request: attempts, each with a time limit."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from msx_frontend.errors import DeadlineExceeded, ServiceError
from msx_frontend.job import Field, Job
from msx_frontend.models.model_version import ModelVersion
from msx_frontend.queueing.reply_buffer import ReplyBuffer
from msx_sdk._internal.workflow_spec import WorkflowNode

log = logging.getLogger("msx.workflows")


@dataclass(frozen=True)
class NodeAnswer:
    """The answer of a node or of the workflow. A status of 400 and above ends the workflow."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    phrase: str = ""

    @property
    def failed(self) -> bool:
        return self.status >= 400


class NodeCall:
    """`limit`: the most bytes of an answer, which is held in memory until all who need it have it."""

    def __init__(
        self, node: WorkflowNode, version: ModelVersion, request_id: str, headers: list[tuple[str, str]], limit: int
    ) -> None:
        self._node = node
        self._version = version
        self._limit = limit
        self._id = f"{request_id}-{node.name}"
        self._headers = headers

    async def answer(self, fields: list[Field]) -> NodeAnswer:
        """Tries again, up to `retry-attempts` times, after what may pass: anything but a status below 500.

        Raises ServiceError. A cancel of the task that waits here cancels the job.
        """
        attempts = self._node.settings.retry_attempts
        for attempt in range(attempts):
            try:
                answer = await self._attempt(fields, attempt)
                if answer.status < 500:
                    return answer
                why = f"status {answer.status}"
            except ServiceError as error:
                if error.status < 500:
                    raise
                why = error.message
            log.warning("%s: attempt %d of %d failed: %s", self._id, attempt + 1, attempts + 1, why)
        return await self._attempt(fields, attempts)

    async def _attempt(self, fields: list[Field], number: int) -> NodeAnswer:
        source, limit = self._version.source, self._node.settings.timeout_ms
        reply = ReplyBuffer()
        deadline = time.monotonic() + limit / 1000
        id = f"{self._id}-{number + 1}" if number else self._id
        job = Job(id, source.name, None, fields, self._headers, reply, deadline=deadline)
        try:
            self._submit(job)
            reply.job = job
            return await self._read(reply)
        except DeadlineExceeded as error:
            if job.deadline != deadline:
                raise  # the model's own clientTimeoutInMills was shorter
            raise DeadlineExceeded(f"it has not answered within its timeout-ms ({limit}).") from error
        finally:
            reply.close()

    def _submit(self, job: Job) -> None:
        """Does not use the registry, which refuses requests when the server ends: this request was accepted before."""
        try:
            self._version.submit(job)
        except ServiceError as error:
            self._version.metrics.answered(error.status)
            raise

    async def _read(self, reply: ReplyBuffer) -> NodeAnswer:
        head = await reply.head()
        body = bytearray()
        async for chunk in reply:
            body += chunk
            if len(body) > self._limit:
                raise ServiceError(f"its answer is larger than max_response_size ({self._limit} bytes).")
        return NodeAnswer(head.status, head.headers, bytes(body), head.phrase)
