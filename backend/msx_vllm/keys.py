"""Keys of model-config.yaml that belong to MSX's own engine."""

from msx_core.config import ModelConfig
from msx_sdk.errors import HandlerLoadError

INSTEAD = {
    "max_total_tokens": "vllm.max_model_len",
    "max_batch_prefill_tokens": "vllm.max_num_batched_tokens",
    "max_batch_total_tokens": "vllm.kv_cache_memory_bytes",
    "max_input_tokens": "vllm.max_model_len",
    "block_size": "vllm.block_size",
    "cache_memory": "vllm.kv_cache_memory_bytes",
    "cache_fraction": "vllm.gpu_memory_utilization",
    "slot_buckets": "vllm.max_num_seqs",
    "context_buckets": "",
    "prefill_buckets": "",
    "device_sampling": "",
    "ready_after": "",
    "capture_buckets": "",
    "speculative": "vllm.speculative_config",
}
"""Fields, each with the argument of vLLM's engine that says the same; "" without one."""


def check_keys(config: ModelConfig) -> None:
    """Raises HandlerLoadError for a key that this engine does not read."""
    names = dict(zip(config.__struct_fields__, config.__struct_encode_fields__, strict=True))
    for field in sorted(config.explicit & INSTEAD.keys()):
        hint = f"give {INSTEAD[field]}" if INSTEAD[field] else "leave it out"
        raise HandlerLoadError(f"{names[field]}: --handler vllm does not read this key: {hint}")
