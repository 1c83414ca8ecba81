"""How much memory keys and values get where the processor computes, if `vllm:` does not say it."""

from msx_core.cgroup import memory_limit

SHARE = 0.25
"""Part of the memory of the machine or its cgroup; the rest is for weights, activations and the server."""


def host_cache_bytes(workers: int, ranks: int, limit: int | None = None) -> int:
    """Bytes for one of vLLM's processes: the share divided by the model's `workers`, and by the `ranks` of each."""
    return int((memory_limit() if limit is None else limit) * SHARE) // (max(workers, 1) * max(ranks, 1))
