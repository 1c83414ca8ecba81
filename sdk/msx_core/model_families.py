"""`model_type` of `config.json`, for what the server must know of a model before one of its workers runs."""

GENERATES, EMBEDS, CLASSIFIES = "text_generation", "embedding", "sequence_classification"
"""Handlers of MSX's own engine for models in Hugging Face's layout."""
TORCHSERVES_VLLM = ("vllm_handler", "ts.torch_handler.vllm_handler")
"""Names of TorchServe's handler of vLLM in manifests."""
WRITERS = frozenset({GENERATES, "vllm", *TORCHSERVES_VLLM})
"""Handlers that are known to make texts of most models, before a worker has said what it does."""

OF_PICTURES = (
    "gemma3",
    "gemma4",
    "gemma4_unified",
    "mistral3",
    "qwen2_5_vl",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_vl",
    "qwen3_vl_moe",
)
"""Models of pictures and texts, of which MSX's own engine serves the text part."""
DECODERS = (
    "llama",
    "mistral",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_5_text",
    "qwen3_5_moe_text",
    "deepseek_v2",
    "deepseek_v3",
    "gpt_oss",
    "phi3",
    "glm4",
    "kimi_k2",
    "olmo2",
    "smollm3",
    "granite",
    "seed_oss",
    "ernie4_5",
    "ernie4_5_moe",
    "glm4_moe",
    "mixtral",
    "minimax_m2",
    "hunyuan_v1_dense",
    "ministral3",
    "gemma3_text",
    "gemma4_text",
    "gemma4_unified_text",
    *OF_PICTURES,
)
"""Families that MSX's own engine knows: those of `msx_llm.models`."""
ENCODERS = ("bert", "roberta", "xlm-roberta", "camembert", "distilbert")
"""Families of `msx_llm.embedding`, beside decoders."""


def own_families(handler: str) -> tuple[str, ...]:
    """Families that a handler of MSX's own engine knows."""
    return DECODERS if handler == GENERATES else (*ENCODERS, *DECODERS)
