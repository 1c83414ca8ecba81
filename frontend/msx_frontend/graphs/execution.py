"""One request to a graph, without a task: each answer of a node queues the jobs of the nodes behind it."""

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from msx_core.references import LEAST
from msx_core.service_errors import ServiceError
from msx_frontend.graphs.edges import Edge
from msx_frontend.graphs.errors import NodeFailed
from msx_frontend.graphs.graph import Graph, Headers
from msx_frontend.graphs.running import Running
from msx_frontend.graphs.step import Step
from msx_frontend.job import Field, Job
from msx_frontend.shared_value import SharedValue, StageJob

log = logging.getLogger("msx.workflows")


class Execution:
    """Runs the client's `job`; it is the job's runner, so that a cancel of it reaches the nodes where the request is.

    The first failure ends the request: all that still runs for it is cancelled.
    """

    __slots__ = ("_answers", "_leaf_kind", "_lent", "_running", "_sizes", "_values", "graph", "held", "job", "owner")

    def __init__(self, graph: Graph, job: Job, owner: Running, leaf_kind: str) -> None:
        """It is in `owner` while it runs. `leaf_kind`: the kind of the leaves' jobs."""
        self.graph, self.job, self.owner, self._leaf_kind = graph, job, owner, leaf_kind
        self.held: list[Edge] = []
        """Where it has places."""
        self._running: list[Step] = []
        self._values: dict[int, bytes] = {}
        """Answers of nodes that others wait to read, by place."""
        self._lent: dict[int, list[Any]] = {}
        """Shared memory that values refer to, by place, and how many nodes have still to read it."""
        self._sizes: dict[int, int] = {}
        """Bytes of the large ones among them, by place."""
        self._answers: dict[str, bytes] = {}
        """Answers of leaves, where there are several."""

    def begin(self) -> None:
        """Raises ServiceError when the first node does not take the request."""
        job = self.job
        job.group, job.of_nodes = self, True
        self.owner.add(self)
        try:
            self._try(Step(self, self.graph.start, job.fields, 0))
        except BaseException:
            self._end()
            raise

    @property
    def begun(self) -> bool:
        """A worker was given the first node's job, or that is over."""
        start = self.graph.start
        return not all(step.node is start and (step.job is None or not step.job.started) for step in self._running)

    def cancel(self, job: Job) -> None:
        """The client's job was cancelled."""
        self._end()

    # -- what steps tell --

    def answered(self, step: Step, status: int, phrase: str, headers: Headers, data: bytes) -> None:
        node, job = step.node, self.job
        if job.done or not self._over(step):
            return
        if node is self.graph.start and step.job is not None:
            job.started = step.job.started
        if status >= 400:
            if status < 500 or not self._again(step, f"status {status}"):
                self._finish(step, status, phrase, [*headers, (self.graph.form.header, node.name)], data)
        elif node.after:
            self._pass_on(step, data)
        elif len(self.graph.leaves) == 1:
            self._finish(step, status, phrase, self._typed(headers), data)
        else:
            self._gather(node.name, data)

    def streams(self, step: Step, status: int, phrase: str, headers: Headers) -> None:
        """The first piece of the leaf's reply is there."""
        job, own = self.job, step.job
        assert own is not None
        job.status, job.credit, job.first_chunk = status, own.credit, own.first_chunk
        job.started = job.started or own.started
        if status >= 400:
            headers = [*headers, (self.graph.form.header, step.node.name)]
        job.sink.start(status, phrase, headers)

    def stream_ended(self, step: Step, status: int) -> None:
        if not self.job.done and self._over(step):
            self._end()
            self.job.finish(status)

    def failed(self, step: Step, error: ServiceError) -> None:
        if self.job.done or not self._over(step):
            return
        if error.status >= 500 and self._again(step, error.message):
            return
        self._end()
        if step.job is not None:
            _drop(step.job)
            step.job = None
        self.job.fail(self._named(step, error))

    def _named(self, step: Step, error: ServiceError) -> NodeFailed:
        form = self.graph.form
        return NodeFailed(step.node.name, error, form.header, own=form.own_types)

    # -- nodes --

    def _try(self, step: Step) -> None:
        """Queue a job for it, also again and again while it is refused. Raises NodeFailed when no attempt is left."""
        while True:
            self._running.append(step)
            try:
                return self._submit(step)
            except ServiceError as error:
                self._running.remove(step)
                if error.status < 500 or not self._may_repeat(step):
                    raise self._named(step, error) from error
                step.warn(error.message)
                step = Step(self, step.node, step.fields, step.attempt + 1)

    def _submit(self, step: Step) -> None:
        node, own, form = step.node, self.job, self.graph.form
        id = own.id
        if form.names_ids:
            id = f"{id}-{node.name}-{step.attempt + 1}" if step.attempt else f"{id}-{node.name}"
        kind = form.kind if node.after else self._leaf_kind
        job = step.job = self._job(id, kind, step)
        try:
            (node.target.pass_on if form.shares and node is not self.graph.start else node.target.submit)(job)
        except ServiceError as error:
            node.target.refused(error.status)
            raise

    def _job(self, id: str, kind: str, step: Step) -> Job:
        node, headers, deadline = step.node, self.job.headers, step.deadline()
        if not self.graph.form.shares:
            return Job(id, node.model, None, step.fields, headers, step, kind=kind, deadline=deadline)
        lent = self._lent
        shared: tuple[SharedValue, ...] = tuple(lent[one][0] for one in node.names if one in lent) if lent else ()
        job = StageJob(id, node.model, None, step.fields, headers, step, kind=kind, deadline=deadline)
        return job.refer(shared)

    def _again(self, step: Step, why: str) -> bool:
        """Tries once more what may pass. A node that answers 4xx has judged the request."""
        if not self._may_repeat(step):
            return False
        step.warn(why)
        self._start(Step(self, step.node, step.fields, step.attempt + 1))
        return True

    def _may_repeat(self, step: Step) -> bool:
        deadline = self.job.deadline
        return step.attempt + 1 < step.node.attempts.most and (deadline is None or time.monotonic() < deadline)

    def _start(self, step: Step) -> None:
        try:
            self._try(step)
        except ServiceError as error:
            self._end()
            self.job.fail(error)
        except Exception:  # a sink raises nothing
            log.exception("%s: node %s could not be started", self.job.id, step.node.name)
            self._end()
            self.job.fail(ServiceError("The server could not pass the request on."))

    def _pass_on(self, step: Step, data: bytes) -> None:
        """Start the nodes behind it whose values are all there."""
        node, values, of = step.node, self._values, self.graph.form.value_type
        if type(step.job) is StageJob and (lent := step.job.take_lent()) is not None:
            self._lent[node.place] = [lent, len(node.after)]
            self._count(node.place, lent.size)
        elif len(data) > LEAST:
            self._count(node.place, len(data))
        step.job = None
        if node.leads_to is not None:
            return self._start(Step(self, node.leads_to, [Field("body", of, data)], 0))
        values[node.place] = data
        for following in node.after:
            if all(place in values for place in following.names):
                fields = [Field(name, of, values[place]) for place, name in following.names.items()]
                self._start(Step(self, following, fields, 0))
                if self.job.done:
                    break
        return None

    def _over(self, step: Step) -> bool:
        """The step has ended: its places are free. False for one that the request does not wait for any more."""
        if step not in self._running:
            return False
        self._running.remove(step)
        for edge in step.node.leaves:
            if edge in self.held:
                self.held.remove(edge)
                edge.release(self._sizes.get(edge.source, 0))
        if self._lent:
            self._has_read(step.node.names)
        return True

    def _count(self, place: int, size: int) -> None:
        """A large value is there: it takes room on its edges."""
        self._sizes[place] = size
        for edge in self.held:
            if edge.source == place:
                edge.size += size

    def _has_read(self, places: Iterable[int]) -> None:
        for place in places:
            if (lent := self._lent.get(place)) is not None:
                lent[1] -= 1
                if not lent[1]:
                    self._lent.pop(place)[0].close()

    # -- ends --

    def _finish(self, step: Step, status: int, phrase: str, headers: Headers, data: bytes) -> None:
        self._end()
        job, own = self.job, step.job
        if own is not None:
            job.started, job.first_chunk, step.job = job.started or own.started, own.first_chunk, None
            _drop(own)
        job.answer(status, phrase, headers, data)

    def _end(self) -> None:
        """Nothing runs for the request any more. Idempotent. Ends the reference cycles, too."""
        self.owner.discard(self)
        self.job.group = None
        running, self._running = self._running, []
        for step in running:
            if step.job is not None:
                step.job.cancel()
                _drop(step.job)
                step.job = None
        held, self.held = self.held, []
        for edge in held:
            edge.release(self._sizes.get(edge.source, 0))
        self._sizes.clear()
        for value, _ in self._lent.values():
            value.close()
        self._lent.clear()
        self._values.clear()

    def _typed(self, headers: Headers) -> Headers:
        own = self.graph.form.leaf_type
        if not own or any(name.lower() == "content-type" for name, _ in headers):
            return headers
        return [*headers, *own]

    def _gather(self, name: str, data: bytes) -> None:
        """Several leaves make JSON by their names (TorchServe's rule)."""
        self._answers[name] = data
        if len(self._answers) == len(self.graph.leaves):
            answers = {leaf.name: self._answers[leaf.name] for leaf in self.graph.leaves}
            joining = asyncio.get_running_loop().run_in_executor(None, _joined, answers)
            joining.add_done_callback(self._joined)

    def _joined(self, joining: asyncio.Future[bytes]) -> None:
        self._end()
        if not joining.cancelled():
            self.job.answer(200, "", [*self.graph.form.leaf_type], joining.result())


def _drop(job: Job) -> None:
    """Close the shared value of a reply that nobody will read."""
    if type(job) is StageJob and (lent := job.take_lent()) is not None:
        lent.close()


def _joined(bodies: dict[str, bytes]) -> bytes:
    return msgspec.json.format(msgspec.json.encode({name: _value(body) for name, body in bodies.items()}), indent=2)


def _value(body: bytes) -> Any:
    """A body that is not JSON becomes a text."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode("utf-8", "replace")
