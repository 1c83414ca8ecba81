"""Work of the ranks in tests; each returns what JSON can say."""

import json
import socket
import time
from dataclasses import replace
from typing import Any

import numpy as np

from msx_core.batch import Batch
from msx_core.config import parse_model_config
from msx_core.failures import RequestFailure
from msx_core.mindspore.loading import parameter_size, without_data
from msx_core.reply_head import ReplyHead
from msx_core.resolve import resolve_object
from msx_core.servable_start import ServableStart
from msx_sdk import Context, InvalidInput
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore import PipelineHandler, TensorParallelHandler, Weights, collectives, load_shards
from msx_sdk.mindspore.parallel import init_parallel
from msx_sdk.request import InferenceRequest
from msx_sdk.runner import Runner
from tests.free_ports import free_port

LONG = 9
"""The length of prompts that the last stage fails on."""


class Tokens(TensorParallelHandler):
    def build(self, parallel: Any) -> Any:
        from tests.core.mindspore_parallel.nets import Model

        return Model(parallel)

    def preprocess(self, data: Any) -> Any:
        return token_ids(data)


class StagedTokens(PipelineHandler):
    chunks = 2

    def layers(self, parallel: Any) -> Any:
        from tests.core.mindspore_parallel.nets import Picky, language_model

        cells = language_model(parallel)
        head = cells.pop("head")
        return cells | {"picky": Picky(LONG), "head": head}

    def preprocess(self, data: Any) -> Any:
        return token_ids(data)

    def postprocess(self, outputs: Any) -> Any:
        if self.context.get_request_header(0, "fail"):
            raise InvalidInput("not this one")
        return super().postprocess(outputs)

    def describe(self) -> Any:
        return {"stages": self.parallel.stages}


class Streaming(StagedTokens):
    """Greedy tokens, one a pass."""

    def stream(self, data: Any) -> Any:
        ids = token_ids(data)
        for _ in range(3):
            if ids[0, 0] == 1:
                raise InvalidInput("a stream that fails")
            best = self.forward(ids)[:, -1].argmax(-1).astype(np.int32)
            ids = np.concatenate([ids, best[:, None]], 1)
            yield [str(token) for token in best]


def token_ids(data: Any) -> Any:
    rows = [row["body"] for row in data]
    if any(token < 0 for row in rows for token in row):
        raise InvalidInput("token ids are 0 or more")
    return np.array(rows, np.int32)


class Answers:
    def __init__(self) -> None:
        self.chunks: dict[str, list[str]] = {}
        self.failures: dict[str, tuple[int, str]] = {}

    def chunk(self, request: InferenceRequest, body: bytes | bytearray, head: ReplyHead | None, last: bool) -> None:
        self.chunks.setdefault(request.id, []).append(body.decode())

    def fail(self, request: InferenceRequest, failure: RequestFailure) -> None:
        self.failures[request.id] = (failure.status, failure.message)

    def expect_stream(self, batch: Batch, idx: int, *, events: bool) -> None: ...

    def flush(self) -> None: ...


class Served:
    """A handler on this rank; requests of which this rank sees what a server would give it."""

    def __init__(self, handler: Any, context: Context) -> None:
        resolved = resolve_object(handler)
        resolved.initialize(context)
        self.handler = resolved.owner
        self.runner = Runner(resolved, context, isolate=False)
        self.sees_inputs = self.handler.parallel.first_stage

    def ask(self, *bodies: Any, **headers: str) -> Answers:
        answers = Answers()
        requests = [
            InferenceRequest.of_data(str(n), {"body": b} if self.sees_inputs else {}) for n, b in enumerate(bodies)
        ]
        for request in requests:
            if self.sees_inputs:
                request.headers.update(headers)
        self.runner.run(requests, answers)
        return answers


def prompts(rows: int) -> list[list[int]]:
    return [[(7 * row + 3 * column) % 37 for column in range(5)] for row in range(rows)]


def error_of(answers: Answers, context: Context, rows: int) -> float | None:
    """The largest difference from one rank's logits; None on ranks whose answers do not count."""
    from mindspore import Tensor

    from tests.core.mindspore_parallel.nets import one_rank

    if answers.failures or not any("[" in "".join(chunks) for chunks in answers.chunks.values()):
        return None
    wanted = one_rank(context.model_dir)(Tensor(np.array(prompts(rows), np.int32))).asnumpy()
    got = np.array([json.loads("".join(answers.chunks[str(n)])) for n in range(rows)])
    assert got.shape == wanted.shape
    return float(abs(got - wanted).max())


def summary(served: Served, errors: list[float | None], **more: Any) -> dict[str, Any]:
    return {"errors": errors, "counts": collectives.counts(), **more}


def tensor_parallel(context: Context) -> Any:
    served = Served(Tokens, context)
    first = served.ask(*prompts(3))
    bad = served.ask([1, 2], [-1, 3])
    pause = float(context.model_yaml_config.get("idle", 0))
    started = time.monotonic()
    while time.monotonic() - started < pause:  # no rank waits in a collective meanwhile
        time.sleep(0.1)
    again, shard = served.ask(*prompts(3)), list(served.handler.cell.layers[0].up.weight.shape)
    errors, counts = [error_of(answers, context, 3) for answers in (first, again)], collectives.counts()
    served.handler._compute = served.handler.cell  # as without `mode: graph`
    errors.append(error_of(served.ask(*prompts(3)), context, 3))
    return summary(served, errors, failures=bad.failures, shard=shard, of_graph=counts)


def pipeline(context: Context) -> Any:
    served = Served(StagedTokens, context)
    errors = [error_of(served.ask(*prompts(rows)), context, rows) for rows in (5, 1, 4)]
    refused = {
        "by preprocess": served.ask([1, 2], [-1, 3]),
        "by postprocess": served.ask([1, 2], fail="yes"),
        "by the last stage": served.ask([0] * LONG, [1] * LONG, [2] * LONG),
        "unlike inputs": ask_unlike(served),
    }
    described = served.ask([1, 2], describe="True").chunks
    errors.append(error_of(served.ask(*prompts(5)), context, 5))
    failures = {how: answers.failures for how, answers in refused.items()}
    eager = eager_collectives(served.handler.parallel)
    return summary(served, errors, failures=failures, described=described, places=list(served.handler.cells), **eager)


def eager_collectives(parallel: Any) -> dict[str, Any]:
    """Each of them on this rank's number, in the two groups that it is in."""
    from mindspore import Tensor

    mine = Tensor(np.full(2, parallel.rank, np.float32))
    whole = Tensor(np.full(2, parallel.rank, np.int64))
    results: dict[str, Any] = {"sent": passed_on(mine, parallel)}
    for kind, group in (("tp", parallel.tp_group), ("pp", parallel.pp_group)):
        results[kind] = {
            "sum": collectives.all_reduce(mine, group).asnumpy().tolist(),
            "sum of integers": collectives.all_reduce(whole, group).asnumpy().tolist(),
            "max": collectives.all_reduce(mine, group, "max").asnumpy().tolist(),
            "gathered": collectives.all_gather(mine, group).asnumpy().tolist(),
            "of the last": collectives.broadcast(mine, collectives.members(group)[-1], group).asnumpy().tolist(),
            "unchanged": mine.asnumpy().tolist(),
        }
    return results


def passed_on(mine: Any, parallel: Any) -> list[Any]:
    """Tensors from the stage before: floats, booleans, nothing."""
    from mindspore import Tensor, bool_, float32

    group = parallel.pp_group
    flags = Tensor(np.array([True, False]))
    if parallel.first_stage:
        for tensor in (mine, flags, mine[:0]):
            collectives.send(tensor, parallel.peer(1), group)
        return []
    source = parallel.peer(0)
    got = [collectives.recv((2,), float32, source, group), collectives.recv((2,), bool_, source, group)]
    got.append(collectives.recv((0,), float32, source, group))
    return [tensor.asnumpy().tolist() for tensor in got]


def ask_unlike(served: Served) -> Answers:
    """Two inputs that do not have the same number of rows."""
    served.handler.preprocess = lambda data: (np.zeros((2, 3), np.int32), np.zeros((1, 3), np.int32))
    try:
        return served.ask([1], [2])
    finally:
        del served.handler.preprocess


def streaming(context: Context) -> Any:
    served = Served(Streaming, context)
    whole = served.ask(*prompts(2))
    failed = served.ask([1, 2])
    abandoned = abandon(served, context)
    again = served.ask(*prompts(2))
    chunks = [answers.chunks for answers in (whole, again)]
    return summary(served, [], chunks=chunks, failures=failed.failures, abandoned=abandoned)


def abandon(served: Served, context: Context) -> list[Any]:
    """Every rank closes its stream after the first part, as when the clients have left."""
    data = [{"body": row} if served.sees_inputs else {} for row in prompts(2)]
    requests = [InferenceRequest.of_data(str(n), row) for n, row in enumerate(data)]
    stream = served.handler.handle(data, context.for_batch(Batch(requests, Answers())))
    first: list[Any] = next(stream)
    stream.close()
    return first


def meeting(context: Context) -> Any:
    try:
        init_parallel(context)
    except HandlerLoadError as error:
        return {"error": str(error)}
    return {"error": None}


def meeting_nobody(context: Context) -> Any:
    """Errors of one rank after the other to which the rest of the group does not come."""
    from msx_core.mindspore import parallel
    from msx_core.mindspore.rendezvous import meet
    from msx_core.mindspore.runtime import setup

    config = parse_model_config(context.model_yaml_config)[0]
    target, leader = setup(context), parallel._meeting(context, config)

    def error(rank: int, port: int) -> str:
        try:
            meet(replace(leader, rank=rank, port=port), target)
        except HandlerLoadError as raised:
            return str(raised).replace(str(port), "PORT")
        return ""

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        return {"leads": error(1, free_port()), "follows": error(0, free_port()), "taken": error(0, port)}


def load_and_measure(context: Context) -> Any:
    """Bytes: this rank's parameters, and its peak of anonymous memory above what it had before it loaded."""
    parallel = init_parallel(context)
    from tests.core.mindspore_parallel.memory import Peak
    from tests.core.mindspore_parallel.nets import square_layers
    from tests.core.mindspore_parallel.test_memory import LAYERS, SIDE

    with Peak() as peak:
        with without_data():
            cells = square_layers(LAYERS, SIDE, parallel)
        with Weights(context.model_dir) as weights:
            load_shards(cells, weights)
    return {"parameters": parameter_size(cells), "peak": peak.bytes}


def rank_models(context: Context) -> dict[str, Any]:
    """A MindIR a rank: with inputs and an all-reduce on all of them, or, on a second stage, without inputs."""
    from msx_core.mindspore.rank_models import load_rank_model

    parallel = init_parallel(context)
    from tests.core.mindspore_parallel.exported import export_stage, export_tp

    files = str(export_tp(context)), str(export_stage(context))
    groups = (str(context.model_dir / f"groups{context.rank}.pb"),)
    start = ServableStart(rank_models=(files,) * 2, rank_groups=(groups,) * 2)
    context.info = replace(context.info, servable=start)
    model = load_rank_model(context, parallel, 2, 1)
    if model.follows:
        model.follow()
        return {"counts": collectives.counts()}
    x = np.ones((4, 8), np.float32)
    with model.leading():
        answers = [model([x], subgraph) for subgraph in (0, 1)]
        error = said(lambda: model([], 0))  # on every rank alike: they go on
        answers += [model([x * 2], subgraph) for subgraph in (0, 1)]
    shapes = [[list(spec.shape) for spec in specs] for specs in model.outputs]
    arrays = [[array.tolist() for array in answer] for answer in answers]
    return {"answers": arrays, "shapes": shapes, "error": error, "counts": collectives.counts()}


def said(call: Any) -> str:
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""
