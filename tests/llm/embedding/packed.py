"""Small decoders as sentence-transformers packs those that make vectors: with prompts, and a token behind each text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file
from tokenizers import processors

from tests.llm.classification.decoders import CONFIGS, MARKS, TOKENIZER, tensors_of, tokenizer
from tests.llm.embedding.checkpoints import write_modules

END = MARKS[0]
PACKED: dict[str, tuple[dict[str, Any], str]] = {
    "last_of_causal": (CONFIGS["qwen3"] | {"architectures": ["Qwen3Model"], "tie_word_embeddings": True}, "lasttoken"),
    "last_of_both_ways": (CONFIGS["qwen2_two_ways"] | {"architectures": ["Qwen2Model"]}, "lasttoken"),
    "mean_of_both_ways": (CONFIGS["qwen2_two_ways"] | {"architectures": ["Qwen2Model"]}, "mean_tokens"),
}
"""Qwen3-Embedding's way, and those of GTE."""
PROMPTS = {"query": "judge : query : ", "document": ""}
TEXTS = ["the cat sat on a mat", "dogs", "a mat with the statement . " * 4]


def write_packed(folder: Path, kind: str) -> Path:
    """One of `PACKED`, whose tensors have no prefix; returns the folder."""
    config, mode = PACKED[kind]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    named = tensors_of(config | {"tie_word_embeddings": True}, 0)
    tensors = {name.removeprefix("model."): array for name, array in named.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    made = tokenizer()
    made.post_processor = processors.TemplateProcessing(f"$A {END}", f"$A {END} $B {END}", [(END, 0)])
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER))
    write_modules(folder, max_length=48, **{f"pooling_mode_{mode}": True, "include_prompt": True})
    about = {"prompts": PROMPTS, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(about))
    return folder
