"""One request to a workflow."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec

from msx_frontend.errors import RequestCancelled, ServiceError
from msx_frontend.job import Field
from msx_frontend.workflows.errors import NodeFailed
from msx_frontend.workflows.node_call import NodeAnswer, NodeCall
from msx_frontend.workflows.workflow import Workflow

JSON = ("content-type", "application/json")
"""TorchServe sends it with every answer. MSX sends it unless the handler sets another one."""


class _Stopped(Exception):
    """A node has ended the request; the execution knows the answer or error."""


class Execution:
    """Each node is a task that waits for its predecessors, so that branches run in parallel.

    The first failure, or `cancel`, ends all tasks.
    """

    def __init__(
        self, workflow: Workflow, request_id: str, fields: list[Field], headers: list[tuple[str, str]], limit: int
    ) -> None:
        self._workflow = workflow
        self._spec = workflow.spec
        self._id = request_id
        self._fields = fields
        self._headers = headers
        self._limit = limit
        self._tasks: dict[str, asyncio.Task[NodeAnswer]] = {}
        self._end: NodeAnswer | ServiceError | None = None
        """The answer or error of a node that ended the request early."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> NodeAnswer:
        """Raises the ServiceError of the node that failed, which it names."""
        self._workflow.executions.add(self)
        try:
            return await self._run()
        finally:
            self._workflow.executions.discard(self)
            self.ended.set_result(None)

    def cancel(self, error: ServiceError | None = None) -> None:
        self._stop(error or RequestCancelled())

    async def _run(self) -> NodeAnswer:
        for name in self._spec.dag.order:
            self._tasks[name] = asyncio.create_task(self._node(name))
        try:
            await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._cancel_tasks()
            results = await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        if isinstance(self._end, ServiceError):
            raise self._end
        if self._end is not None:
            return self._end
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return await self._leaves()

    async def _node(self, name: str) -> NodeAnswer:
        fields = await self._inputs(name)
        version = self._workflow.versions[name]
        call = NodeCall(self._spec.nodes[name], version, self._id, self._headers, self._limit)
        try:
            answer = await call.answer(fields)
        except ServiceError as error:
            self._stop(NodeFailed(name, error))
            raise _Stopped from error
        if answer.failed:
            self._stop(replace(answer, headers=[*answer.headers, ("x-workflow-node", name)]))
            raise _Stopped
        return answer

    async def _inputs(self, name: str) -> list[Field]:
        """TorchServe's inputs: the request for the start node, one answer as `body`, several answers by the names of
        their nodes."""
        before = self._spec.dag.predecessors[name]
        if not before:
            return self._fields
        answers = [(one, await self._tasks[one]) for one in before]
        if len(answers) == 1:
            return [Field("body", None, answers[0][1].body)]
        return [Field(one, None, answer.body) for one, answer in answers]

    def _stop(self, end: NodeAnswer | ServiceError) -> None:
        if self._end is None:
            self._end = end
            self._cancel_tasks()

    def _cancel_tasks(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _leaves(self) -> NodeAnswer:
        """The answer of one leaf as it is; of several leaves as JSON by their names (TorchServe's rule)."""
        answers = {name: self._tasks[name].result() for name in self._spec.dag.leaves}
        if len(answers) == 1:
            (only,) = answers.values()
            typed = any(name.lower() == "content-type" for name, _ in only.headers)
            return only if typed else replace(only, headers=[*only.headers, JSON])
        body = await asyncio.to_thread(_joined, {name: answer.body for name, answer in answers.items()})
        return NodeAnswer(200, [JSON], body)


def _joined(bodies: dict[str, bytes]) -> bytes:
    return msgspec.json.format(msgspec.json.encode({name: _value(body) for name, body in bodies.items()}), indent=2)


def _value(body: bytes) -> Any:
    """A body that is not JSON becomes a text."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode("utf-8", "replace")
