"""Puts the estimate together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from msx_backend.llm.division import check_division, check_generates, own_layers
from msx_backend.llm.limits import PREFILL
from msx_backend.llm.memory import DEVICE_FRACTION, HOST_FRACTION
from msx_backend.llm.models.config import DecoderConfig
from msx_backend.llm.models.registry import read_config
from msx_backend.llm.models.weights import Checkpoint
from msx_backend.llm.sizing.layout import group_of, served_by
from msx_backend.llm.sizing.npus import NpuPeaks, device_of
from msx_backend.llm.sizing.parts import activation_bytes, cache_bytes, graph_bytes, model_parameters
from msx_backend.llm.sizing.quantised import weight_bytes
from msx_backend.llm.sizing.remedies import Fits, remedies
from msx_backend.llm.sizing.roofline import decode_time, prefill_time
from msx_sdk._internal.sizing import RankSizing, Sizing, SizingRequest, StepTime
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel

DTYPES = ("float16", "bfloat16", "float32")
PROCESS = 900 << 20
"""Of a worker without its weights: MindSpore, its graphs and the tokenizer, as measured on a CPU."""


def estimate(request: SizingRequest) -> Sizing:
    """Reads `config.json`, and the headers of the weights where they are beside it. Raises HandlerLoadError."""
    npu = device_of(request.npu)
    config, group = _config(request), group_of(request.parallel, npu.target)
    check_generates(config)
    check_division(config, group)
    context = _context(request, config)
    ranks = [_rank(config, npu, rank, request.texts, context) for rank in _ranks(group)]
    sizing = Sizing(
        model_type=config.model_type,
        parameters=model_parameters(config),
        dtype=config.dtype_on(npu.target),
        npu=request.npu,
        texts=request.texts,
        context=context,
        stages=group.stages,
        shards=group.tp_size,
        ranks=ranks,
        host=_host(config, npu, group),
        keys=list(served_by(group, request.texts, context)),
        notes=list(_notes(npu, group)),
        remedies=[],
    )
    if not sizing.fits:
        changes = remedies(config, group, request.texts, context, _fits(config, npu))
        sizing = msgspec.structs.replace(sizing, remedies=list(changes))
    return _timed(sizing, config, npu, group)


def _config(request: SizingRequest) -> DecoderConfig:
    folder = Path(request.folder)
    config = read_config(folder)
    if any(folder.glob("*.safetensors*")):
        with Checkpoint(folder, config):
            pass
    if request.dtype is None:
        return config
    if request.dtype not in DTYPES:
        raise HandlerLoadError(f"--dtype: {request.dtype!r} is not known; known are {', '.join(DTYPES)}")
    return msgspec.structs.replace(config, dtype=request.dtype)


def _context(request: SizingRequest, config: DecoderConfig) -> int:
    if request.context is not None and request.context > config.context:
        raise HandlerLoadError(
            f"--context: {request.context} is more than the model's context of {config.context} tokens"
        )
    return request.context or config.context


def _ranks(group: Parallel) -> Iterator[Parallel]:
    """One of each stage: the ranks of a stage have parts of the same size."""
    return (replace(group, rank=group.peer(stage)) for stage in range(group.stages))


def _rank(config: DecoderConfig, npu: NpuPeaks, rank: Parallel, texts: int, context: int) -> RankSizing:
    weights = weight_bytes(config, rank)
    memory = npu.memory if npu.target == "Ascend" else npu.memory // rank.world_size
    chunk = min(PREFILL[-1], context)
    return RankSizing(
        rank=rank.rank,
        layers=len(own_layers(config, rank)),
        weights=weights,
        cache=cache_bytes(config, rank, texts, context),
        activations=activation_bytes(config, rank, texts, context, chunk),
        graphs=graph_bytes(config, rank),
        memory=memory,
        reserve=_reserve(npu, memory, weights),
    )


def _reserve(npu: NpuPeaks, memory: int, weights: int) -> int:
    """What the engine's own sizing keeps from the cache: see `llm.memory`."""
    if npu.target == "Ascend":
        return int(max(memory - weights, 0) * (1 - DEVICE_FRACTION))
    return max(int(memory * (1 - HOST_FRACTION)) - weights, 0)


def _fits(config: DecoderConfig, npu: NpuPeaks) -> Fits:
    def fits(group: Parallel, texts: int, context: int) -> bool:
        return all(_rank(config, npu, rank, texts, context).free >= 0 for rank in _ranks(group))

    return fits


def _host(config: DecoderConfig, npu: NpuPeaks, group: Parallel) -> int:
    """The processes of one group, and all weights while they are on their way to NPUs."""
    weights = sum(weight_bytes(config, rank) for rank in _ranks(group)) * group.tp_size
    return group.world_size * PROCESS + (weights if npu.target == "Ascend" else 0)


def _notes(npu: NpuPeaks, group: Parallel) -> Iterator[str]:
    if npu.doubt:
        yield f"not certain: {npu.doubt}"
    if npu.bandwidth is None:
        yield "no times: the bandwidth and the operations of this CPU are not known"
    elif group.tp_size > 1 and npu.link is None:
        yield "all-reduces are left out: no bandwidth between two of these NPUs is known"


def _timed(sizing: Sizing, config: DecoderConfig, npu: NpuPeaks, group: Parallel) -> Sizing:
    """Texts go through the stages in as many lanes as there are stages: all stages compute at once, and each reads
    its weights for every lane."""
    if npu.bandwidth is None:
        return sizing
    lane = -(-sizing.texts // group.stages)
    decode = max((decode_time(config, rank, npu, lane, sizing.context) for rank in _ranks(group)), key=_whole)
    chunk = min(PREFILL[-1], sizing.context)
    prefills = [prefill_time(config, rank, npu, sizing.context, chunk) for rank in _ranks(group)]
    step = _whole(decode) * group.stages
    return msgspec.structs.replace(
        sizing, decode=decode, prefill=_sum(prefills), text_rate=1 / step, sum_rate=sizing.texts / step
    )


def _whole(step: StepTime) -> float:
    return step.seconds + (step.exchange or 0)


def _sum(steps: list[StepTime]) -> StepTime:
    """Of stages that wait for each other."""
    exchanges = [step.exchange for step in steps if step.exchange is not None]
    return StepTime(
        memory=sum(step.memory for step in steps),
        compute=sum(step.compute for step in steps),
        exchange=sum(exchanges) if exchanges else None,
    )
