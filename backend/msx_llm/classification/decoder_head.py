"""The heads of decoders: one layer on the state of the last token, or the logits of the words that they answer with."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msx_core.config.classification import ClassificationOptions
from msx_core.mindspore.weights import Weights
from msx_core.tokenizer_files import read_object
from msx_llm.embedding.dense import ACTIVATIONS, Dense
from msx_llm.embedding.pooling import Array
from msx_llm.embedding.sentence import module_place
from msx_llm.models.config import DecoderConfig
from msx_llm.models.weights import HEAD, SCORES, Checkpoint
from msx_llm.text import Tokenizer
from msx_sdk.errors import HandlerLoadError

ANSWERS = ("yes", "no")
"""The words of a model that does not name others, as in sentence-transformers."""
MODULE = "LogitScore"


def answers_by_words(folder: Path) -> bool:
    """Whether the model's files have a head for all tokens, and none for labels."""
    with Weights(folder) as weights:
        return SCORES not in weights


def read_scores(folder: Path, hidden: int) -> Dense:
    """The layer of `…ForSequenceClassification`, which has no bias. Raises HandlerLoadError."""
    with Weights(folder) as weights:
        shape = weights.shape(SCORES)
        if len(shape) != 2 or shape[1] != hidden:
            raise HandlerLoadError(f"{SCORES}: its shape is {shape}, and states have {hidden} numbers")
        return _layer(weights.read(SCORES))


def read_answers(folder: Path, config: DecoderConfig, tokens: Sequence[int]) -> Dense:
    """The logit of the first token, less that of the second one if there is one: two rows of the head. Raises
    HandlerLoadError."""
    with Checkpoint(folder, config) as checkpoint:
        name = f"{checkpoint.prefix}embed_tokens.weight" if config.tied else HEAD
        rows = [checkpoint.read(name, slice(token, token + 1)).astype(np.float32) for token in tokens]
    return _layer((rows[0] - rows[1] if len(rows) > 1 else rows[0]) * config.logits_factor)


def answer_tokens(folder: Path, tokenizer: Tokenizer, options: ClassificationOptions, vocabulary: int) -> list[int]:
    """Tokens of the yaml's words, the ids of the module `LogitScore`, or `yes` and `no`. Raises HandlerLoadError."""
    if options.answers is None and (place := module_place(folder, MODULE)) is not None:
        raw = read_object(place, "config.json")
        found = [raw.get("true_token_id"), raw.get("false_token_id")]
        ids = found[:1] if found[1] is None else found
        if not all(isinstance(one, int) and 0 <= one < vocabulary for one in ids):
            raise HandlerLoadError(f"{place.name}/config.json: true_token_id and false_token_id: {found} are no tokens")
        return [int(one) for one in ids if one is not None]
    return [_token(tokenizer, word) for word in options.answers or ANSWERS]


def _token(tokenizer: Tokenizer, word: str) -> int:
    found = tokenizer.token_id(word)
    if found is None:
        raise HandlerLoadError(
            f"the tokenizer has no token {word!r}, which a model without a head for labels is to answer with; give "
            "classification.answers in model-config.yaml, or serve it with --handler text_generation"
        )
    return found


def _layer(weight: Array) -> Dense:
    weight = weight.astype(np.float32)
    bias: Any = np.zeros(len(weight), np.float32)
    return Dense(np.ascontiguousarray(weight.T), bias, ACTIVATIONS["Identity"])
