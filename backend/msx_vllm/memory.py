"""How much memory keys and values get where the processor computes, if `vllm:` does not say it."""

from msx_core.cgroup import memory_limit

SHARE = 0.25
"""Part of the memory of the machine or its cgroup; the rest is for weights, activations and the server."""


def host_cache_bytes(parts: int, limit: int | None = None) -> int:
    """Bytes for one of vLLM's processes that compute, of which the model's workers have `parts` together."""
    return int((memory_limit() if limit is None else limit) * SHARE) // parts
