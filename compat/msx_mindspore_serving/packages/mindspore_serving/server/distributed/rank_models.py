"""Whether the models of the ranks fit together. The texts are MindSpore Serving's; after `details:` they are ours."""

from collections.abc import Sequence
from typing import NamedTuple

from msx_core.mindir import EncryptedMindIRError, MindIRError, TensorSpec, read_signature


class RankGraph(NamedTuple):
    """Inputs and outputs of one subgraph of one rank: type and shape of each tensor."""

    inputs: list[TensorSpec]
    outputs: list[TensorSpec]


def check_models(files: Sequence[Sequence[str]], stage_size: int) -> None:
    """`files` has the paths of the subgraphs of each rank. Models that are encrypted are compared by nobody. Raises
    RuntimeError."""
    try:
        ranks = [[_read(file) for file in subgraphs] for subgraphs in files]
    except EncryptedMindIRError:
        return
    except MindIRError as error:
        raise RuntimeError(str(error)) from None
    if any(len(subgraphs) != len(ranks[0]) for subgraphs in ranks):
        raise RuntimeError("The number of graph not match in different agent")
    for subgraph in range(len(ranks[0])):
        _check_subgraph([subgraphs[subgraph] for subgraphs in ranks], subgraph, stage_size)


def _read(file: str) -> RankGraph:
    signature = read_signature(file)
    return RankGraph(signature.inputs, signature.outputs)


def _check_subgraph(ranks: list[RankGraph], subgraph: int, stage_size: int) -> None:
    in_stage = len(ranks) // stage_size
    for rank, model in enumerate(ranks[:in_stage]):
        if details := _difference("input", model.inputs, ranks[0].inputs):
            raise RuntimeError(
                f"Rank {rank} input infos not match rank 0, subgraph: {subgraph}, you can check if the actual stage "
                "size of the distributed model matches the stage size declared in servable_config.py, "
                f"details: {details}"
            )
    _check_later_inputs(ranks, in_stage)
    for rank, model in enumerate(ranks):
        first = rank - rank % in_stage
        if details := _difference("output", model.outputs, ranks[first].outputs):
            raise RuntimeError(
                f"Rank {rank} output infos not match rank {first}, subgraph: {subgraph}, details: {details}"
            )


def _check_later_inputs(ranks: list[RankGraph], in_stage: int) -> None:
    """All later stages have none, or all have those of stage 0."""
    later = ranks[in_stage:]
    expected = ranks[0].inputs if later and later[0].inputs else []
    for rank, model in enumerate(later, start=in_stage):
        if _difference("input", model.inputs, expected):
            raise RuntimeError(
                "Expect stage 0(other stages have empty inputs) or all stages have same inputs, "
                f"detect rank {rank} has {len(model.inputs)} inputs, rank 0 has {len(ranks[0].inputs)} and rank "
                f"{in_stage} has {len(later[0].inputs)}, or their types and shapes differ"
            )


def _difference(kind: str, one: list[TensorSpec], other: list[TensorSpec]) -> str:
    if len(one) != len(other):
        return f"{kind}s count {len(one)} not equal to {len(other)}"
    for index, (a, b) in enumerate(zip(one, other, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"{kind} {index} is {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
    return ""
