"""Which members of `config.json` a model type has: those that are read, those that would change what the network
computes, and those that have no effect on it.

A member that would change the numbers is refused by name, unless its value is the neutral one: the network computes
as if it was not there. Unknown keys are named in a warning.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msx_sdk.errors import HandlerLoadError

FILE = "config.json"

log = logging.getLogger("msx.llm")


@dataclass(frozen=True)
class ConfigMembers:
    """The members that one model type reads, refuses or ignores.

    `neutral` has the members that would change the numbers, each with the values that do not. Values are compared by
    equality: 1 is 1.0, and False is 0. A member in both `read` and `neutral` is read.
    """

    read: frozenset[str]
    neutral: Mapping[str, tuple[Any, ...]]
    ignored: frozenset[str]

    def check(self, given: Mapping[str, Any], **sizes: tuple[Any, ...]) -> None:
        """Raises HandlerLoadError for the first member that would change the numbers; warns of unknown ones.

        `given`: the whole file. `sizes`: further neutral values, which follow from the sizes of this model.
        """
        neutral, kind = {**self.neutral, **sizes}, given.get("model_type")
        for name, value in given.items():
            if name not in self.read and name in neutral and value not in neutral[name]:
                raise HandlerLoadError(
                    f"{FILE}, {name}: {_shown(value)} changes what a model computes, and is not supported for the "
                    f"model_type {kind}; {_accepted(neutral[name])}"
                )
        known = self.read | neutral.keys() | self.ignored
        unknown = sorted(name for name in given if name not in known and not name.startswith("_"))
        if unknown:
            log.warning(
                "%s of the model_type %s has members that are not known here, and that are ignored: %s",
                FILE, kind, ", ".join(unknown),
            )  # fmt: skip


def _accepted(values: tuple[Any, ...]) -> str:
    shown = [_shown(value) for value in values if value is not None]
    return f"leave it out{f', or give {shown[-1]}' if shown else ''}"


def _shown(value: Any) -> str:
    return shortened(json.dumps(value))


def shortened(text: str, most: int = 60) -> str:
    """Return at most so many characters of it, for a sentence."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


_OFF = """
    add_cross_attention alibi apply_residual_connection_post_layernorm attention_sinks attn_temperature_tuning
    bidirectional is_bidirectional is_encoder_decoder lm_head_bias normalize_embedding parallel_attn
    parallel_residual qk_layernorm qk_norm rms_norm_add_one rope_interleave rope_interleaved scale_embeddings
    tie_encoder_decoder use_alibi use_bidirectional_attention use_dynamic_ntk use_logn_attn use_mrope
    use_parallel_residual use_post_norm use_qk_norm
"""
"""Switches that must be off."""
_ONE = """
    attention_scale emb_scale embedding_multiplier logit_scale logits_scaling partial_rotary_factor
    residual_multiplier rope_ratio rotary_pct scale_emb
"""
"""Factors that must be 1."""
_NONE = """
    attention_chunk_size attn_scale block_configs clip_qkv compression_config dim_model_base embedding_size
    no_rope_layer_interval no_rope_layers rope_local_base_freq
    scale_depth sliding_window sliding_window_pattern
"""
"""Members that must be absent."""
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(_OFF.split(), (None, False)),
    **dict.fromkeys(_ONE.split(), (None, 1)),
    **dict.fromkeys(_NONE.split(), (None,)),
    "attn_logit_softcapping": (None, 0),
    "final_logit_softcapping": (None, 0),
    "logit_softcapping": (None, 0),
    "hidden_size_per_layer_input": (None, 0),
    "num_kv_shared_layers": (None, 0),
    "attention_k_eq_v": (None, False),
    "enable_moe_block": (None, False),
    "use_double_wide_mlp": (None, False),
    "moe_intermediate_size": (None, 0),
    "n_routed_experts": (None, 0),
    "norm_type": (None, "rms_norm", "rmsnorm"),
    "num_experts": (None, 0),
    "num_local_experts": (None, 0),
    "per_layer_config": (None, {}),
    "position_embedding_type": (None, "rope", "rotary"),
    "pruned_heads": (None, {}),
}  # fmt: skip
"""Members of Hugging Face's decoders that our networks ignore unless their family reads them, with their neutral
values."""

_ORIGIN = """
    architectures auto_map finetuning_task is_llama_config max_sequence_length model_max_length name_or_path prefix
    task_specific_params tokenizer_class transformers.js_config transformers_version unsloth_fixed unsloth_version
"""
"""Members about the file itself, and about the software that reads it."""
_TRAINING = """
    attention_dropout attn_implementation classifier_dropout embd_pdrop gradient_checkpointing hidden_dropout_prob
    initializer_range output_router_logits pretraining_tp resid_pdrop residual_dropout router_aux_loss_coef
    use_flash_attention use_flash_attn
"""
"""Members about training."""
_RUNNING = """
    chunk_size_feed_forward cross_attention_hidden_size is_decoder keys_to_ignore_at_inference output_attentions
    output_hidden_states return_dict return_dict_in_generate tf_legacy_loss torchscript use_bfloat16 use_cache
"""
"""Members about how transformers runs the model, and what its functions return."""
_TASKS = """
    id2label label2id num_labels num_nextn_predict_layers problem_type type_vocab_size
"""
"""Members about heads for other tasks."""
_SAMPLING = """
    bad_words_ids begin_suppress_tokens bos_token_id decoder_start_token_id diversity_penalty do_sample
    early_stopping encoder_no_repeat_ngram_size eos_token_id exponential_decay_length_penalty forced_bos_token_id
    forced_eos_token_id length_penalty max_length max_new_tokens min_length no_repeat_ngram_size num_beam_groups
    num_beams num_return_sequences output_scores pad_token_id remove_invalid_values repetition_penalty sep_token_id
    suppress_tokens temperature top_k top_p typical_p unk_token_id
"""
"""Tokens and sampling: generation_config.json and requests decide these."""
IGNORED = frozenset(f"{_ORIGIN} {_TRAINING} {_RUNNING} {_TASKS} {_SAMPLING}".split())
"""Members that do not change what any of the networks computes."""
