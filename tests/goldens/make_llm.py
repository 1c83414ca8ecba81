"""Small random checkpoints of every family, and the logits that Hugging Face transformers computes with them.

    python -m venv hf && hf/bin/pip install torch transformers && hf/bin/python tests/goldens/make_llm.py [NAME …]

Rewrites the folders of tests/goldens/llm and llm_parts, and those of tests/goldens/llm_variants, which have a
config.json and logits, and the weights of another one. Neither torch nor transformers is a dependency of the project.
"""

import json
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

torch: Any = import_module("torch")
transformers: Any = import_module("transformers")

FOLDER = Path(__file__).parent / "llm"
OF_PICTURES = Path(__file__).parent / "llm_parts"
VARIANTS = Path(__file__).parent / "llm_variants"
VOCAB, TOKENS = 96, 48
SIZE = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 100.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 100.0,
    "partial_rotary_factor": 0.75,
    "short_factor": [1.0, 1.5, 2.0],
    "long_factor": [1.0, 3.0, 9.0],
}
"""Six of the eight numbers of a head turn."""
TOKENS_OF_TEXTS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
DEEP_YARN = YARN | {"mscale": 1.0, "mscale_all_dim": 0.8}
LATENT = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 24,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 16,
    "n_group": 4,
    "topk_group": 2,
    "first_k_dense_replace": 1,
}
EXPERTS_OF_GLM = {
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
}
NETS: dict[str, Any] = TOKENS_OF_TEXTS | {
    "num_hidden_layers": 3,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "head_dim": 16,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.25},
}
GEMMA4 = TOKENS_OF_TEXTS | {
    "num_hidden_layers": 4,
    "head_dim": 8,
    "global_head_dim": 16,
    "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "vocab_size_per_layer_input": VOCAB,
    "hidden_size_per_layer_input": 0,
}
K_IS_V = GEMMA4 | {"attention_k_eq_v": True, "num_global_key_value_heads": 1}
CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "llama": ("Llama", {"tie_word_embeddings": True, "rope_parameters": LLAMA3}, torch.float32),
    "llama_biased": ("Llama", {"attention_bias": True, "mlp_bias": True}, torch.float16),
    "llama_mqa": ("Llama", {"num_key_value_heads": 1, "tie_word_embeddings": True}, torch.float16),
    "mistral": ("Mistral", {"sliding_window": 8, "head_dim": 12}, torch.bfloat16),
    "qwen2": (
        "Qwen2",
        {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1, "rope_parameters": YARN},
        torch.bfloat16,
    ),
    "qwen2_moe": (
        "Qwen2Moe",
        EXPERTS | {"shared_expert_intermediate_size": 24, "mlp_only_layers": [0]},
        torch.bfloat16,
    ),
    "gpt_oss": (
        "GptOss",
        {
            "head_dim": 16,
            "num_local_experts": 5,
            "num_experts_per_tok": 2,
            "intermediate_size": 32,
            "sliding_window": 8,
            "swiglu_limit": 1.5,
            "rope_parameters": YARN | {"truncate": False},
        },
        torch.bfloat16,
    ),
    "deepseek_v2": (
        "DeepseekV2",
        LATENT | {"q_lora_rank": None, "topk_method": "group_limited_greedy", "routed_scaling_factor": 1.5},
        torch.bfloat16,
    ),
    "deepseek_v3": ("DeepseekV3", LATENT | {"q_lora_rank": 24, "rope_parameters": DEEP_YARN}, torch.bfloat16),
    "qwen3_moe": (
        "Qwen3Moe",
        EXPERTS | {"head_dim": 16, "norm_topk_prob": True, "decoder_sparse_step": 2, "num_experts": 9},
        torch.bfloat16,
    ),
    "qwen3": (
        "Qwen3",
        {"head_dim": 16, "tie_word_embeddings": True, "rope_parameters": LINEAR},
        torch.float16,
    ),
    "phi3": (
        "Phi3",
        TOKENS_OF_TEXTS
        | {
            "max_position_embeddings": 128,
            "original_max_position_embeddings": 64,
            "sliding_window": 40,
            "rope_parameters": LONGROPE,
            "tie_word_embeddings": True,
        },
        torch.bfloat16,
    ),
    "glm4": (
        "Glm4",
        TOKENS_OF_TEXTS | {"head_dim": 16, "attention_bias": True, "partial_rotary_factor": 0.5},
        torch.bfloat16,
    ),
    "gemma3": (
        "Gemma3Text",
        TOKENS_OF_TEXTS
        | {
            "head_dim": 16,
            "query_pre_attn_scalar": 12,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
        torch.bfloat16,
    ),
    "gemma4": (
        "Gemma4Text",
        GEMMA4
        | {
            "hidden_size_per_layer_input": 6,
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "final_logit_softcapping": 3.0,
        },
        torch.bfloat16,
    ),
    "gemma4_unified": ("Gemma4UnifiedText", K_IS_V | {"final_logit_softcapping": 3.0}, torch.bfloat16),
    "gemma4_experts": (
        "Gemma4Text",
        K_IS_V | {"enable_moe_block": True, "num_experts": 6, "top_k_experts": 2, "moe_intermediate_size": 16},
        torch.bfloat16,
    ),
    "olmo2": ("Olmo2", TOKENS_OF_TEXTS | {"rms_norm_eps": 1e-6}, torch.bfloat16),
    "smollm3": (
        "SmolLM3",
        TOKENS_OF_TEXTS | {"no_rope_layers": [1, 0], "use_sliding_window": True, "sliding_window": 8},
        torch.bfloat16,
    ),
    "granite": (
        "Granite",
        TOKENS_OF_TEXTS
        | {
            "attention_multiplier": 0.2,
            "embedding_multiplier": 12.0,
            "logits_scaling": 4.0,
            "residual_multiplier": 0.22,
            "tie_word_embeddings": True,
        },
        torch.bfloat16,
    ),
    "seed_oss": ("SeedOss", TOKENS_OF_TEXTS | {"head_dim": 16, "attention_out_bias": True}, torch.bfloat16),
    "ernie4_5": ("Ernie4_5", TOKENS_OF_TEXTS | {"head_dim": 16, "use_bias": True}, torch.bfloat16),
    "hunyuan": (
        "HunYuanDenseV1",
        TOKENS_OF_TEXTS
        | {
            "head_dim": 16,
            "rope_parameters": {"rope_type": "dynamic", "rope_theta": 100.0, "alpha": 8.0, "factor": 1.0},
        },
        torch.bfloat16,
    ),
    "glm4_moe": (
        "Glm4Moe",
        EXPERTS_OF_GLM | {"head_dim": 16, "attention_bias": True, "partial_rotary_factor": 0.5, "use_qk_norm": True},
        torch.bfloat16,
    ),
    "mixtral": ("Mixtral", TOKENS_OF_TEXTS | {"num_local_experts": 5, "sliding_window": 8}, torch.bfloat16),
    "minimax_m2": (
        "MiniMaxM2",
        TOKENS_OF_TEXTS
        | {"head_dim": 16, "num_local_experts": 5, "num_experts_per_tok": 2, "partial_rotary_factor": 0.5},
        torch.bfloat16,
    ),
    "ernie4_5_moe": (
        "Ernie4_5_Moe",
        TOKENS_OF_TEXTS | {"moe_num_experts": 6, "moe_k": 2, "moe_intermediate_size": 16, "moe_num_shared_experts": 2},
        torch.bfloat16,
    ),
    "ministral3": (
        "Ministral3",
        TOKENS_OF_TEXTS
        | {
            "head_dim": 16,
            "rope_parameters": YARN
            | {
                "original_max_position_embeddings": 64,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "llama_4_scaling_beta": 0.1,
            },
        },
        torch.bfloat16,
    ),
}
CASES |= {
    "qwen3_next": (
        "Qwen3Next",
        NETS | EXPERTS | {"shared_expert_intermediate_size": 24, "mlp_only_layers": [0]},
        torch.bfloat16,
    ),
    "qwen3_5_text": ("Qwen3_5Text", NETS | {"linear_conv_kernel_dim": 3}, torch.bfloat16),
    "qwen3_5_moe_text": ("Qwen3_5MoeText", NETS | EXPERTS | {"shared_expert_intermediate_size": 24}, torch.bfloat16),
}

ROPE_OF_PICTURES = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]}
EYES_OF_QWEN = {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "out_hidden_size": 32}
EYES_OF_GEMMA = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "position_embedding_size": 16,
}
PARTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "mistral3": (
        "Mistral3",
        {"model_type": "mistral", "head_dim": 12},
        {
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "image_size": 28,
        },
    ),
    "gemma4_pictures": ("Gemma4", K_IS_V, EYES_OF_GEMMA),
    "qwen2_5_vl": ("Qwen2_5_VL", {"rope_parameters": ROPE_OF_PICTURES}, EYES_OF_QWEN | {"fullatt_block_indexes": [0]}),
    "qwen3_5": (
        "Qwen3_5",
        NETS | {"rope_parameters": NETS["rope_parameters"] | {"mrope_section": [1, 1, 0], "mrope_interleaved": True}},
        EYES_OF_QWEN | {"num_position_embeddings": 16},
    ),
    "qwen3_vl": (
        "Qwen3VL",
        {"head_dim": 8, "rope_parameters": ROPE_OF_PICTURES | {"mrope_interleaved": True}},
        EYES_OF_QWEN | {"deepstack_visual_indexes": [0], "num_position_embeddings": 16},
    ),
    "qwen3_vl_moe": (
        "Qwen3VLMoe",
        {"head_dim": 8, "rope_parameters": ROPE_OF_PICTURES | {"mrope_interleaved": True}, "mlp_only_layers": [1]}
        | EXPERTS,
        EYES_OF_QWEN | {"deepstack_visual_indexes": [0], "num_position_embeddings": 16},
    ),
}
"""Models of pictures and texts: a class, and what its parts have."""
DYNAMIC = {"type": "dynamic", "factor": 2.0}
CHANGES: dict[str, tuple[str, dict[str, Any], int]] = {
    "scaling_beside_parameters": ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, TOKENS),
    "dynamic": ("llama", {"rope_parameters": None, "rope_scaling": DYNAMIC, "max_position_embeddings": 32}, 40),
    "dynamic_with_original": (
        "llama",
        {
            "rope_parameters": None,
            "rope_theta": 100.0,
            "rope_scaling": DYNAMIC | {"original_max_position_embeddings": 16},
            "max_position_embeddings": 64,
        },
        TOKENS,
    ),
    "longrope": ("phi3", {"original_max_position_embeddings": 32}, 40),
    "yarn_with_original_outside": ("qwen2", {"original_max_position_embeddings": 32}, TOKENS),
}
"""Members of config.json that are changed, of which None are left out; and how many tokens are the prompt, which is
seen at once. What follows is seen token by token, for with dynamic rope that is another thing."""


def main() -> None:
    for name in sys.argv[1:] or [*CASES, *PARTS, *CHANGES]:
        if name in CASES:
            family, options, dtype = CASES[name]
            folder = FOLDER / name
            torch.manual_seed(0)
            config = getattr(transformers, f"{family}Config")(**SIZE | options)
            shutil.rmtree(folder, ignore_errors=True)
            make(folder, getattr(transformers, f"{family.removesuffix('Text')}ForCausalLM")(config), dtype)
        elif name in PARTS:
            family, text, eyes = PARTS[name]
            torch.manual_seed(0)
            config = getattr(transformers, f"{family}Config")(
                text_config=SIZE | text, vision_config=eyes, tie_word_embeddings=name == "gemma4_pictures"
            )
            shutil.rmtree(OF_PICTURES / name, ignore_errors=True)
            made = getattr(transformers, f"{family}ForConditionalGeneration")(config)
            make(OF_PICTURES / name, made, torch.bfloat16)
        else:
            vary(VARIANTS / name, *CHANGES[name])


def vary(folder: Path, base: str, changes: dict[str, Any], prompt: int) -> None:
    config = json.loads((FOLDER / base / "config.json").read_text()) | changes
    folder.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept, indent=2) + "\n")
    tokens = np.load(FOLDER / base / "expected.npz")["tokens"]
    with tempfile.TemporaryDirectory() as temp:
        shutil.copytree(FOLDER / base, temp, dirs_exist_ok=True)
        shutil.copy(folder / "config.json", temp)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            temp, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        logits = as_generated(model, tokens, prompt)
    np.savez_compressed(folder / "expected.npz", tokens=tokens, logits=logits, prompt=prompt, weights=base)


def as_generated(model: Any, tokens: Any, prompt: int) -> Any:
    pieces, cache, found = [tokens[:prompt], *([token] for token in tokens[prompt:])], None, []
    with torch.no_grad():
        for piece in pieces:
            made = model(torch.tensor(piece)[None], past_key_values=cache, use_cache=True)
            cache = made.past_key_values
            found.append(made.logits[0].numpy())
    return np.concatenate(found)


def make(folder: Path, model: Any, dtype: Any) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter + torch.randn_like(parameter) * 0.2)  # biases and norms, too
        for name, buffer in (*model.named_buffers(), *model.named_parameters()):
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(torch.randn_like(buffer) * 0.2)
            if name.endswith("layer_scalar"):
                buffer.copy_(1 + torch.randn_like(buffer) * 0.2)
        model.to(dtype).save_pretrained(folder, max_shard_size="30KB" if "biased" in folder.name else "1MB")
        (folder / "generation_config.json").unlink(missing_ok=True)
        tokens = np.random.default_rng(0).integers(0, VOCAB, TOKENS)
        read = type(model).from_pretrained(folder, dtype=torch.float32).eval()
        logits = read(torch.tensor(tokens)[None]).logits[0].numpy()
    np.savez_compressed(folder / "expected.npz", tokens=tokens, logits=logits)


if __name__ == "__main__":
    main()
