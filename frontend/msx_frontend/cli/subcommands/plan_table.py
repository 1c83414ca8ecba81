"""An estimate as a table of at most 80 columns."""

import textwrap
from collections.abc import Iterator

from msx_archiver.sizes import human
from msx_core.sizing import RankSizing, Sizing, StepTime

WIDTH = 80
LEFT_OUT = (
    "These are estimates: peaks of the device, which nothing reaches. Left out: what each operator and each "
    "collective takes to start, sampling, messages between stages, fragmentation."
)


def table(sizing: Sizing) -> str:
    return "\n".join(_lines(sizing))


def _lines(sizing: Sizing) -> Iterator[str]:
    group = f"{sizing.stages} x {sizing.shards} (stages x shards)" if sizing.stages * sizing.shards > 1 else "1"
    yield f"Estimate: {sizing.model_type}, {sizing.parameters / 1e9:.2f} billion parameters, {sizing.dtype}"
    yield f"{sizing.texts} texts of {sizing.context} tokens on {sizing.npu}; devices: {group}"
    yield ""
    for rank in sizing.ranks:
        yield from _rank(rank, sizing)
    yield _row("host, one group", human(sizing.host), "processes, and weights while they load")
    yield ""
    yield from _times(sizing)
    yield from _verdict(sizing)
    if sizing.fits:
        yield from _wrapped(f"model-config.yaml: {'; '.join(sizing.keys)}", "   ")
    for remedy in sizing.remedies:
        yield from _wrapped(f"-> {remedy}", "   ")
    for note in (*sizing.notes, LEFT_OUT):
        yield from _wrapped(note)


def _rank(rank: RankSizing, sizing: Sizing) -> Iterator[str]:
    which = f"each device of stage {rank.rank // sizing.shards}" if sizing.stages > 1 else "each device"
    yield _row(which, human(rank.memory), f"{rank.layers} layers")
    yield _row("  weights", human(rank.weights))
    yield _row("  KV cache", human(rank.cache), f"{sizing.texts} x {sizing.context} tokens")
    if rank.adapters:
        yield _row("  adapters", human(rank.adapters))
    if rank.draft:
        alone = "weights and cache, on the first device" if sizing.shards > 1 else "weights and cache"
        yield _row("  draft model", human(rank.draft), alone)
    yield _row("  activations", human(rank.activations), "of the largest step")
    if rank.graphs:
        yield _row("  graphs", human(rank.graphs))
    kept = max(rank.reserve - rank.activations - rank.graphs, 0)
    yield _row("  kept free", human(kept), "for graphs and buffers, by cacheFraction")
    yield _row("  free" if rank.free >= 0 else "  missing", human(abs(rank.free)))


def _times(sizing: Sizing) -> Iterator[str]:
    if sizing.decode is None or sizing.prefill is None or sizing.text_rate is None or sizing.sum_rate is None:
        return
    each = " of a stage" if sizing.stages > 1 else ""
    yield _row(f"decode step{each}", _duration(sizing.decode), _bound(sizing.decode))
    yield _row("prefill of a text", _duration(sizing.prefill), _bound(sizing.prefill))
    yield _row("tokens/s at most", f"{sizing.text_rate:.1f}", f"of each text; {sizing.sum_rate:.0f} of all")
    yield ""


def _duration(step: StepTime) -> str:
    return f"{(step.seconds + (step.exchange or 0)) * 1000:.1f} ms"


def _bound(step: StepTime) -> str:
    exchanged = f"; all-reduces {step.exchange * 1000:.2f} ms of it" if step.exchange else ""
    return f"{step.bound} bound{exchanged}"


def _verdict(sizing: Sizing) -> list[str]:
    if sizing.refusal is not None:
        return _wrapped(f"It would not be loaded: {sizing.refusal}", "   ")
    if sizing.fits:
        return ["It fits."]
    return ["It does not fit." + (" Change one of these keys of model-config.yaml:" if sizing.remedies else "")]


def _row(name: str, value: str, said: str = "") -> str:
    return f"{name:<24}{value:>12}  {said}".rstrip()


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
