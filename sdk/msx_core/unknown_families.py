"""Model types that MSX's own engine does not know: which of its families is near, and who serves them."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from msx_core.model_families import ENCODERS

_VLLMS = """
    afmoe apertus arcee aria axk1 blip-2 bloom chatglm cohere cohere2 cohere2_moe cohere2_vision cohere_compass
    cosmos3_edge cwm dbrx deepseek deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 diffusion_gemma emu3 ernie4_5
    ernie4_5_moe ernie4_5_vl_moe exaone exaone4 exaone4_5 exaone_moe falcon falcon_h1 falcon_mamba flex_olmo gemma
    gemma2 gemma3 gemma3_text gemma3n gemma3n_text gemma4 gemma4_text gemma4_unified glm glm4 glm4_moe glm4_moe_lite
    glm4v glm4v_moe glm5_next glm_moe_dsa glm_ocr gpt-sw3 gpt2 gpt_bigcode gpt_neox gpt_oss gptj granite
    granite4_vision granite_swa granitemoe granitemoe_swa granitemoehybrid granitemoeshared hrm_text
    hunyuan_v1_dense hunyuan_v1_moe hunyuan_vl hy_v3 hy_v4 hyperclovax idefics3 inkling_mm_model inkling_text
    internlm2 internlm3 internvl jais2 jamba kimi_k2 kimi_linear kimi_vl laguna lfm2 lfm2_moe lfm2_vl llama llama4
    llama4_text llava llava_next llava_next_video llava_onevision longcat_flash mamba mamba2 mellum mimo
    mimo_v2_flash minicpm minicpm3 minicpmv4_6 minicpmv4_7 minimax_m2 minimax_m3_vl ministral3 mistral mistral3
    mixtral muse_glimmer nemotron nemotron_h nemotron_h_omni olmo olmo2 olmo3 olmo_hybrid olmoe opt orion
    paddleocr_vl paligemma phi phi3 qianfan_ocr qwen2 qwen2_5_vl qwen2_moe qwen2_vl qwen3 qwen3_5 qwen3_5_moe
    qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe qwen4_exp qwen4_exp_text seed_oss
    shieldgemma2 smollm3 smolvlm stablelm starcoder2 step3_text step3p7 vaultgemma zamba2
"""
VLLMS = frozenset(_VLLMS.split())
"""Language models that vLLM 0.32.0 serves; `tests/vllm/test_real.py` compares them with its registry."""
_KIN = {"kimi": "deepseek_v3", "ministral": "mistral", "mixtral": "mistral"}
"""First words of names, and the family that their models are like."""
_UNRELATED = frozenset({"gpt"})
"""First words that models without anything in common have."""


def unknown_family(kind: str, known: Sequence[str]) -> str:
    """Say in one sentence that a handler with the families `known` does not serve `kind`, and what does."""
    said = f"config.json, model_type: {kind!r} is not a family that this engine knows; {known_near(kind, known)}"
    if kind in ENCODERS:
        return f"{said}; it makes no texts: serve it with --handler embedding"
    if kind in VLLMS:
        return f"{said}; vLLM's engine serves it: pack it with --handler vllm, or start with --engine vllm"
    return f"{said}; vLLM's engine is not known to serve it either"


def known_near(kind: str, known: Sequence[str]) -> str:
    """Say which family is near, or which there are."""
    near = nearest(kind, known)
    return f"the nearest that it knows is {near}" if near else f"known are {', '.join(known)}"


def nearest(kind: str, known: Sequence[str]) -> str | None:
    """The family with the same first word whose name is most alike; None where there is none."""
    word = _word(kind)
    kin = [name for name in known if word not in _UNRELATED and (_word(name) == word or name == _KIN.get(word))]
    return max(kin, key=lambda name: SequenceMatcher(None, kind, name).ratio(), default=None)


def _word(name: str) -> str:
    return re.split(r"[^a-z]", name.lower(), maxsplit=1)[0]
