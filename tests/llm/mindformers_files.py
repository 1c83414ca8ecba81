"""Files with MindFormers' names, of tensors with the hub's: of Llama, and of DeepSeek, whose heads its converters
divide and whose experts they stack. Written here anew, so that nothing of the engine's reading is in them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from msx_llm.models.config import DecoderConfig
from msx_llm.models.registry import read_config

Tensors = dict[str, Any]
LAYERS = (
    (".self_attn.q_a_proj.", ".attention.q2l_proj."),
    (".self_attn.q_a_layernorm.", ".attention.lq_norm."),
    (".self_attn.kv_a_layernorm.", ".attention.lkv_norm."),
    (".mlp.shared_experts.gate_proj.", ".feed_forward.shared_experts.w1."),
    (".mlp.shared_experts.down_proj.", ".feed_forward.shared_experts.w2."),
    (".mlp.shared_experts.up_proj.", ".feed_forward.shared_experts.w3."),
)
ROUTER = {
    "grouped": ("routed_experts.router_dense.weight", "routed_experts.topk_bias"),
    "batched": ("routed_experts.router.dense.weight", "routed_experts.router.router.topk_bias"),
}


def mindformers(name: str) -> str:
    """MindFormers' name of a tensor, as its converter of Llama makes it."""
    pairs = (
        ("model.embed_tokens.weight", "model.tok_embeddings.embedding_weight"),
        (".self_attn.q_proj.", ".attention.wq."), (".self_attn.k_proj.", ".attention.wk."),
        (".self_attn.v_proj.", ".attention.wv."),
        (".self_attn.o_proj.", ".attention.wo."), (".mlp.gate_proj.", ".feed_forward.w1."),
        (".mlp.down_proj.", ".feed_forward.w2."), (".mlp.up_proj.", ".feed_forward.w3."),
        (".input_layernorm.", ".attention_norm."), (".post_attention_layernorm.", ".ffn_norm."),
        ("model.norm.", "model.norm_out."),
    )  # fmt: skip
    return renamed(name, pairs)


def core(name: str) -> str:
    """The name of a tensor in the networks built of MindFormers' core, as the mapping of its Qwen 3 has it."""
    pairs = (
        ("model.embed_tokens.", "embedding.word_embeddings."), ("lm_head.", "output_layer."),
        (".self_attn.q_proj.", ".self_attention.linear_q."), (".self_attn.k_proj.", ".self_attention.linear_k."),
        (".self_attn.v_proj.", ".self_attention.linear_v."), (".self_attn.o_proj.", ".self_attention.linear_proj."),
        (".self_attn.q_norm.", ".self_attention.q_layernorm."), (".self_attn.k_norm.", ".self_attention.k_layernorm."),
        (".mlp.gate_proj.", ".mlp.gating."), (".mlp.down_proj.", ".mlp.linear_fc2."), (".mlp.up_proj.", ".mlp.hidden."),
        (".post_attention_layernorm.", ".pre_mlp_layernorm."), ("model.norm.", "decoder.final_layernorm."),
        ("model.layers.", "decoder.layers."),
    )  # fmt: skip
    return renamed(name, pairs)


def renamed(name: str, pairs: tuple[tuple[str, str], ...]) -> str:
    """`pairs`: what the hub calls a part of a name, and what stands for it."""
    for hub, other in pairs:
        name = name.replace(hub, other)
    return name


def halves(neighbours: Any) -> Any:
    """[heads, numbers, width]: even ones first"""
    return np.concatenate([neighbours[:, ::2], neighbours[:, 1::2]], axis=1)


def divided(layer: str, values: Tensors, config: DecoderConfig) -> Tensors:
    """The attention of a layer; takes it out of `values`."""
    latent = config.latent
    assert latent is not None
    place, found = f"{layer}self_attn.", f"{layer}attention."
    q = values.pop(f"{place}q_b_proj.weight").reshape(config.heads, latent.query, -1)
    key = values.pop(f"{place}kv_a_proj_with_mqa.weight")[None]
    both = values.pop(f"{place}kv_b_proj.weight").reshape(config.heads, latent.still + latent.value, -1)
    parts = {
        "l2q_nope_proj": q[:, : latent.still],
        "l2q_pe_proj": halves(q[:, latent.still :]),
        "kv2l_latent_kv": key[:, : latent.rank],
        "kv2l_k_pe": halves(key[:, latent.rank :]),
        "lkv2kv_k_nope": both[:, : latent.still],
        "lkv2kv_v": both[:, latent.still :],
    }
    return {f"{found}{name}.weight": part.reshape(-1, part.shape[-1]) for name, part in parts.items()}


def stacked(layer: str, values: Tensors, count: int, form: str) -> Tensors:
    """[experts, in, out], gate and up in one, for grouped products; [experts, out, in] for batched ones, or turned."""
    stacks = [
        np.stack([values.pop(f"{layer}mlp.experts.{expert}.{name}_proj.weight") for expert in range(count)])
        for name in ("gate", "down", "up")
    ]
    place = f"{layer}feed_forward.routed_experts.ffn."
    if form == "grouped":
        gate, down, up = (stack.swapaxes(1, 2) for stack in stacks)
        return {f"{place}w1": np.concatenate([gate, up], -1), f"{place}w2": down}
    if form == "transposed":
        stacks = [stack.swapaxes(1, 2) for stack in stacks]
    return {f"{place}w{number}.weight": stack for number, stack in enumerate(stacks, 1)}


def theirs(values: Tensors, config: DecoderConfig, form: str = "grouped") -> Tensors:
    """Tensors of DeepSeek."""
    left, found, experts = dict(values), Tensors(), config.experts
    assert experts is not None
    dense, bias = ROUTER["grouped" if form == "grouped" else "batched"]
    for number in range(config.layers):
        layer = f"model.layers.{number}."
        found |= divided(layer, left, config)
        if f"{layer}mlp.gate.weight" in left:
            found |= stacked(layer, left, experts.count, form)
            found[f"{layer}feed_forward.{dense}"] = left.pop(f"{layer}mlp.gate.weight")
            found[f"{layer}feed_forward.{bias}"] = left.pop(f"{layer}mlp.gate.e_score_correction_bias")
    for name, value in left.items():
        found[mindformers(renamed(name, LAYERS))] = value
    return {name: np.ascontiguousarray(value) for name, value in found.items()}


def write_mindformers(model: Path, folder: Path) -> Path:
    """The model of a folder with the hub's names, as one `.ckpt`, of which training has left the number of epochs."""
    import mindspore as ms
    from safetensors.numpy import load_file

    folder.mkdir(parents=True)
    shutil.copy(model / "config.json", folder)
    config, values = read_config(folder), load_file(model / "model.safetensors")
    tensors = theirs(values, config) if config.latent else {mindformers(name): it for name, it in values.items()}
    kept = [{"name": name, "data": ms.Tensor(value)} for name, value in tensors.items()]
    ms.save_checkpoint([*kept, {"name": "epoch_num", "data": ms.Tensor(3)}], str(folder / "model.ckpt"))
    return folder
