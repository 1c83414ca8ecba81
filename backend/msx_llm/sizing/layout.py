"""How `--parallel` says a group: tp4, pp2, pp2tp4 in any order, as `parallelType` and `parallel:` do in the yaml."""

import re
from collections.abc import Iterator

from msx_core.config import ModelConfig
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel

MOST_RANKS = 1024
_PART = r"(?:(?P<{0}>{0})(?P<{0}_size>[1-9]\d{{0,3}}))"
_PP, _TP = _PART.format("pp"), _PART.format("tp")
_WORD = [re.compile(pattern) for pattern in (f"{_PP}?{_TP}?", f"{_TP}{_PP}")]


def group_of(word: str, target: str) -> Parallel:
    """The group's first rank. Raises HandlerLoadError."""
    found = next((match for pattern in _WORD if (match := pattern.fullmatch(word.lower()))), None)
    stages, shards = (int(found[f"{part}_size"] or 1) for part in ("pp", "tp")) if found else (0, 0)
    if not 1 <= stages * shards <= MOST_RANKS:
        raise HandlerLoadError(
            f"--parallel: {word!r} is not a group of at most {MOST_RANKS} ranks; give tpN, ppN, or both, as in pp2tp4"
        )
    return Parallel(0, stages, shards, target)


def keys_of(stages: int, shards: int) -> str:
    """The keys of model-config.yaml, in one line."""
    if stages == shards == 1:
        return "parallelType: ''"
    kind = "pptp" if stages > 1 and shards > 1 else "pp" if stages > 1 else "tp"
    split = {"pipelineStages": stages, "tensorParallel": shards}
    given = ", ".join(f"{key}: {size}" for key, size in split.items() if size > 1)
    return f"parallelType: {kind}, parallel: {{{given}}}"


def served_by(group: Parallel, texts: int, context: int) -> Iterator[str]:
    """The keys of model-config.yaml for this group, and so many texts of such a context."""
    if group.world_size > 1:
        yield keys_of(group.stages, group.tp_size)
    yield f"maxTotalTokens: {context}"
    yield f"slotBuckets: [{texts}]"
    if texts > ModelConfig().max_concurrent:
        yield f"maxConcurrent: {texts}"
