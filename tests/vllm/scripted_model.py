"""A Llama that follows scripts: its next token depends on the last one alone, and a token is the whole text of a step.

The chat template puts the marker of a step behind the conversation, chosen by the tools that are offered and by how
many of them have answered. Behind a marker comes the step's text, and behind that the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from tests.vllm.tiny_model import HIDDEN, INNER, make_tiny_model

CONTEXT = 131_072
"""Tokens: the prompts of agents are long, and each word is one."""
UNKNOWN, END = "<unk>", "</s>"
MARGIN = 10.0
"""Before the softmax, times the norm of a state: nothing else can be drawn."""
TEMPLATE = """
{%- set calls = namespace(answered=0) -%}
{%- for message in messages if message.role == 'tool' -%}
{%- set calls.answered = calls.answered + 1 -%}
{%- endfor -%}
{%- set script = namespace(name='') -%}
{%- for tool in tools or [] -%}
{%- if tool.function.name in names -%}{%- set script.name = tool.function.name -%}{%- endif -%}
{%- endfor -%}
{%- for message in messages -%}{{ message.content }} {% endfor -%}
"""


def make_scripted_model(folder: Path, scripts: Mapping[str, Sequence[Any]]) -> Path:
    """Write the model's files. `scripts`: the steps by the name of a tool that their conversations offer, "" where they
    offer none of these; a step is a text, or a call of a tool."""
    make_tiny_model(folder, context=CONTEXT)
    markers = {f"<step {name} {place}>": step for name, steps in scripts.items() for place, step in enumerate(steps)}
    words = [UNKNOWN, END, *markers, *dict.fromkeys(_text(step) for step in markers.values())]
    assert len(words) <= HIDDEN
    config = json.loads((folder / "config.json").read_text())
    shape = {"vocab_size": len(words), "num_hidden_layers": 1, "bos_token_id": None, "eos_token_id": 1}
    (folder / "config.json").write_text(json.dumps(config | shape))
    (folder / "tokenizer.json").write_text(json.dumps(_tokenizer(words, list(markers))))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "unk_token": UNKNOWN}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": _template(scripts)}))
    follows = {words.index(marker): words.index(_text(step)) for marker, step in markers.items()}
    save_file(_weights(len(words), follows), folder / "model.safetensors")
    return folder


def _text(step: Any) -> str:
    return step if isinstance(step, str) else f"<tool_call>\n{json.dumps(step)}\n</tool_call>"


def _template(scripts: Mapping[str, Sequence[Any]]) -> str:
    names = f"{{%- set names = {json.dumps([name for name in scripts if name])} -%}}"
    return f"{names}{TEMPLATE.strip()}<step {{{{ script.name }}}} {{{{ calls.answered }}}}>"


def _tokenizer(words: Sequence[str], markers: Sequence[str]) -> dict[str, Any]:
    """Words between spaces; all that a prompt has beside the markers are unknown."""
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    special = {UNKNOWN: True, END: True, **dict.fromkeys(markers, False)}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": words.index(word), "content": word, "special": it, **added} for word, it in special.items()
        ],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words)},
            "unk_token": UNKNOWN,
        },
        "decoder": {"type": "Fuse"},
        **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor")),
    }


def _weights(vocab: int, follows: Mapping[int, int]) -> dict[str, np.ndarray[Any, Any]]:
    """States are their token's axis: attention and the layers behind it add nothing."""
    head = np.zeros((vocab, HIDDEN), np.float32)
    for token in range(vocab):
        head[follows.get(token, 1), token] = MARGIN
    ones, layer = np.ones(HIDDEN, np.float32), "model.layers.0."
    shapes = {
        **{f"self_attn.{name}_proj": (HIDDEN, HIDDEN) for name in "qkvo"},
        **{f"mlp.{name}_proj": (INNER, HIDDEN) for name in ("gate", "up")},
        "mlp.down_proj": (HIDDEN, INNER),
    }
    return {
        "model.embed_tokens.weight": np.eye(vocab, HIDDEN, dtype=np.float32),
        "lm_head.weight": head,
        "model.norm.weight": ones,
        **{f"{layer}{norm}.weight": ones for norm in ("input_layernorm", "post_attention_layernorm")},
        **{f"{layer}{name}.weight": np.zeros(shape, np.float32) for name, shape in shapes.items()},
    }
