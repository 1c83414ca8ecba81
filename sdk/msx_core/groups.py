"""The message for a handler that cannot run on several ranks, at packing and at loading."""

from collections.abc import Sequence


def group_refused(handler: str, kinds: Sequence[str], kind: str) -> str:
    """`kinds` are the values of `parallelType` that the handler names in `parallel_types`."""
    if not kinds:
        return (
            f"handler {handler!r} serves models of one rank, and model-config.yaml says parallelType: {kind}: "
            "leave out parallelType and its group, and give minWorkers for more workers"
        )
    return (
        f"handler {handler!r} runs on several ranks with parallelType: {' or '.join(kinds)}, and model-config.yaml "
        f"says {kind}: change it, or write a handler on a base class for {kind} (docs/parallel-models.md)"
    )
