"""A model for sequence classification as the handler uses it: limits, texts to token ids, token ids to logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msx_core.config import parse_model_config
from msx_core.config.classification import ClassificationOptions
from msx_core.input_prompts import read_prompts
from msx_core.mindspore.options import read_options
from msx_core.mindspore.runtime import setup
from msx_core.tokenizer_files import read_object
from msx_llm.classification.decoder_head import answer_tokens, answers_by_words, read_answers, read_scores
from msx_llm.classification.head import HEADS, read_head, read_labels
from msx_llm.classification.inputs import PairFiles, PairTokenizer, PairTokens
from msx_llm.classification.scales import Scales, read_scales
from msx_llm.embedding.config import ENCODERS
from msx_llm.embedding.dense import Dense
from msx_llm.embedding.family import EncoderFamily, find_family
from msx_llm.embedding.model import longest_of, shapes_for
from msx_llm.embedding.pooling import Array, Pooling
from msx_llm.embedding.shapes import BatchShape, BatchShapes
from msx_llm.models.registry import read_config
from msx_llm.text import Tokenizer
from msx_llm.text.tokenizing import Tokenizing
from msx_sdk.context import Context
from msx_sdk.errors import HandlerLoadError

if TYPE_CHECKING:
    from msx_llm.embedding.network import EmbeddingNetwork

LIMITS = "sentence_bert_config.json"


@dataclass(frozen=True)
class ScoringHead:
    """The layers behind the state of one token. `segments`: the network takes those of a pair."""

    layers: tuple[Dense, ...]
    pooling: Pooling
    segments: bool = False
    by_words: bool = False
    """The model has no labels, and answers with a word."""


@dataclass(frozen=True)
class ClassificationModel:
    model_type: str
    labels: tuple[str, ...]
    longest: int
    """The most tokens of an input."""
    inputs: PairTokenizer
    texts: Tokenizing[PairTokenizer]
    """Calls `inputs`."""
    shapes: BatchShapes
    network: EmbeddingNetwork
    head: ScoringHead
    scales: Scales

    def __call__(self, texts: Sequence[PairTokens], shape: BatchShape) -> Array:
        """Texts that fit `shape` → the logits [texts, labels] float32"""
        segments = [text.segments for text in texts] if self.head.segments else None
        sums, _ = self.network([text.ids for text in texts], shape, segments)
        vectors = sums[:, 0]
        for dense in self.head.layers:
            vectors = dense(vectors)
        return vectors

    def warm_up(self, report: Callable[[str], None]) -> None:
        """Compiles the graphs of all shapes, so that none is compiled later."""
        self.network.warm_up(list(self.shapes), report, pairs=self.head.segments)


def load_model(context: Context) -> ClassificationModel:
    """Set MindSpore up and read the archive's model. Raises HandlerLoadError."""
    target = setup(context)
    from msx_llm.embedding.network import EmbeddingNetwork

    settings, folder = parse_model_config(context.model_yaml_config)[0], context.model_dir
    options = read_options(context, "classification", ClassificationOptions)
    raw, family = read_object(folder, "config.json"), find_family(folder, target)
    head = _encoder_head(folder, family) if family.model_type in ENCODERS else _decoder_head(folder, options)
    labels = read_labels({} if head.by_words else raw, head.layers[-1].size)
    longest = longest_of(settings, read_object(folder, LIMITS).get("max_seq_length"), family)
    prompt = read_prompts(folder, pooled=True).before(None)
    files = PairFiles(
        folder=str(folder),
        longest=longest,
        vocab_size=family.vocab_size,
        template=options.template,
        prompt=prompt,
        segments=head.segments,
        by_words=head.by_words,
    )
    inputs = files.load()
    return ClassificationModel(
        model_type=family.model_type,
        labels=labels,
        longest=longest,
        inputs=inputs,
        texts=Tokenizing(inputs, files, context.info.largest_body),
        shapes=shapes_for(settings, longest, target),
        network=EmbeddingNetwork(family.load(longest), head.pooling, family.dtype),
        head=head,
        scales=read_scales(folder, raw, len(labels)),
    )


def _encoder_head(folder: Path, family: EncoderFamily) -> ScoringHead:
    """Raises HandlerLoadError."""
    if family.model_type not in HEADS:
        raise HandlerLoadError(
            f"config.json, model_type: {family.model_type} has no head here that scores texts; known are "
            f"{', '.join(HEADS)}"
        )
    return ScoringHead(read_head(folder, family.model_type, family.hidden), Pooling(("cls",)), segments=True)


def _decoder_head(folder: Path, options: ClassificationOptions) -> ScoringHead:
    """Raises HandlerLoadError."""
    config, last = read_config(folder), Pooling(("last",))
    if not answers_by_words(folder):
        return ScoringHead((read_scores(folder, config.hidden_size),), last)
    tokens = answer_tokens(folder, Tokenizer.from_folder(folder), options, config.vocab_size)
    return ScoringHead((read_answers(folder, config, tokens),), last, by_words=True)
