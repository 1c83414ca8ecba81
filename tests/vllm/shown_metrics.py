"""Histograms of vLLM that the dashboard shows."""

HISTOGRAMS = (
    "vllm:iteration_tokens_total",
    "vllm:request_decode_time_seconds",
    "vllm:request_prefill_time_seconds",
    "vllm:request_queue_time_seconds",
    "vllm:time_to_first_token_seconds",
)
