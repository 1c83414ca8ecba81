"""Puts the estimate together."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from msx_core.sizing import Sizing, SizingRequest, StepTime
from msx_llm.adapters.weights import adaptable
from msx_llm.division import check_division, check_forgets, check_generates, check_same_tokens, with_drafts
from msx_llm.kernels.device import DevicePeaks
from msx_llm.limits import PREFILL
from msx_llm.models.adapter_shape import AdapterShape
from msx_llm.models.config import DecoderConfig
from msx_llm.models.registry import read_config
from msx_llm.models.weights import Checkpoint
from msx_llm.sizing.layout import group_of, served_by
from msx_llm.sizing.memory import MemoryPlan, first_ranks
from msx_llm.sizing.parts import model_parameters
from msx_llm.sizing.products import Product, product_of
from msx_llm.sizing.remedies import remedies
from msx_llm.sizing.roofline import decode_time, prefill_time
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel

DTYPES = ("float16", "bfloat16", "float32")


def estimate(request: SizingRequest) -> Sizing:
    """Reads `config.json`, and the headers of the weights where they are beside it. Raises HandlerLoadError."""
    product = product_of(request.npu)
    target = product.device.target
    config, group = _config(request), group_of(request.parallel, target)
    check_division(config, group)
    if request.draft is not None:
        config = with_drafts(config, group.stages)
    context = _context(request, config)
    memory = MemoryPlan(config, product, _draft(request, config, context), _adapters(request, config))
    sizing = Sizing(
        model_type=config.model_type,
        parameters=model_parameters(config),
        dtype=config.dtype_on(target),
        npu=request.npu,
        texts=request.texts,
        context=context,
        stages=group.stages,
        shards=group.tp_size,
        ranks=[memory.rank(rank, request.texts, context) for rank in first_ranks(group)],
        host=memory.host(group),
        keys=[*served_by(group, request.texts, context), *_more_keys(memory)],
        notes=list(_notes(memory, group)),
        remedies=[],
        refusal=_refusal(product, config),
    )
    if not sizing.fits and sizing.refusal is None:
        changes = remedies(config, group, request.texts, context, memory.fits)
        sizing = msgspec.structs.replace(sizing, remedies=list(changes))
    return _timed(sizing, config, product.peaks, group)


def _refusal(product: Product, config: DecoderConfig) -> str | None:
    """Why the engine would not load the model on the device."""
    try:
        product.device.check(product.name)
        product.device.check_model(config)
    except HandlerLoadError as error:
        return str(error)
    return None


def _config(request: SizingRequest) -> DecoderConfig:
    folder = Path(request.folder)
    config = read_config(folder)
    check_generates(config)
    if any((*folder.glob("*.safetensors*"), *folder.glob("*.gguf"))):
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


def _draft(request: SizingRequest, config: DecoderConfig, context: int) -> DecoderConfig | None:
    """The configuration of the small model."""
    if request.draft is None:
        return None
    draft = _read_draft(Path(request.draft))
    check_same_tokens("--draft: it", draft, config)
    check_forgets("--draft: it", draft)
    if context > draft.context:
        raise HandlerLoadError(f"--draft: it takes {draft.context} tokens: give --context of {draft.context} at most")
    return draft


def _read_draft(folder: Path) -> DecoderConfig:
    try:
        draft = read_config(folder)
        check_generates(draft)
    except HandlerLoadError as error:
        raise HandlerLoadError(f"--draft: {error}") from error
    return draft


def _adapters(request: SizingRequest, config: DecoderConfig) -> AdapterShape | None:
    if request.adapters is None:
        return None
    if not (targets := adaptable(config)):
        raise HandlerLoadError(f"--adapters: those of {config.model_type} are not served; merge them into the model")
    return AdapterShape(request.adapters, request.adapter_rank, targets)


def _more_keys(memory: MemoryPlan) -> Iterator[str]:
    if memory.draft is not None:
        yield "speculative: {method: draft}"
    if (shape := memory.adapters) is not None:
        yield f"adapters: {{maxLoras: {shape.places}, maxRank: {shape.rank}}}"


def _notes(memory: MemoryPlan, group: Parallel) -> Iterator[str]:
    peaks = memory.product.peaks
    if peaks.doubt:
        yield f"not certain: {peaks.doubt}"
    if peaks.bandwidth is None:
        yield "no times: the bandwidth and the operations of this CPU are not known"
    elif group.tp_size > 1 and peaks.link is None:
        yield "all-reduces are left out: no bandwidth between two of these NPUs is known"
    if memory.draft is not None:
        yield "times are without drafts: how many are right depends on the texts"
    if memory.adapters is not None:
        yield "times are without adapters, all of whose matrices a step reads, too"


def _timed(sizing: Sizing, config: DecoderConfig, peaks: DevicePeaks, group: Parallel) -> Sizing:
    """Texts go through the stages in as many lanes as there are stages: all stages compute at once, and each reads
    its weights for every lane."""
    if peaks.bandwidth is None:
        return sizing
    lane = -(-sizing.texts // group.stages)
    decode = max((decode_time(config, rank, peaks, lane, sizing.context) for rank in first_ranks(group)), key=_whole)
    chunk = min(PREFILL[-1], sizing.context)
    prefills = [prefill_time(config, rank, peaks, sizing.context, chunk) for rank in first_ranks(group)]
    step = _whole(decode) * group.stages
    return msgspec.structs.replace(
        sizing, decode=decode, prefill=_sum(prefills), text_rate=1 / step, sum_rate=sizing.texts / step
    )


def _whole(step: StepTime) -> float:
    return step.seconds + (step.exchange or 0)


def _sum(steps: list[StepTime]) -> StepTime:
    """Time of stages that wait for each other."""
    exchanges = [step.exchange for step in steps if step.exchange is not None]
    return StepTime(
        memory=sum(step.memory for step in steps),
        compute=sum(step.compute for step in steps),
        exchange=sum(exchanges) if exchanges else None,
    )
