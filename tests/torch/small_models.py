"""Folders of small checkpoints of Hugging Face's, of random weights, each with a tokenizer of words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_BERT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_DISTILLED = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}


def small_bert(place: Path, words: Sequence[str], name: str) -> Any:
    """The model, a class of transformers, whose folder was made."""
    transformers: Any = pytest.importorskip("transformers")
    vocabulary = _tokenizer(place, words)
    transformers.set_seed(1)
    if name.startswith("Distil"):
        config = transformers.DistilBertConfig(vocab_size=vocabulary, **_DISTILLED)
    else:
        config = transformers.BertConfig(vocab_size=vocabulary, **_BERT)
    model = getattr(transformers, name)(config).eval()
    model.save_pretrained(place)
    return model


def _tokenizer(place: Path, words: Sequence[str]) -> int:
    """How many words the tokenizer knows, with the special ones."""
    known = [*SPECIAL, *dict.fromkeys(words)]
    place.mkdir()
    (place / "vocab.txt").write_text("\n".join(known))
    made = pytest.importorskip("tokenizers").BertWordPieceTokenizer({word: at for at, word in enumerate(known)})
    made.save(str(place / "tokenizer.json"))
    special = {f"{name.strip('[]').lower()}_token": name for name in SPECIAL}
    (place / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizerFast", **special}))
    return len(known)
