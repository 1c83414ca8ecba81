"""A model for sequence classification as the handler uses it: limits, texts to token ids, token ids to logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msx_backend.llm.classification.head import HEADS, read_head, read_labels
from msx_backend.llm.classification.inputs import PairTokenizer, PairTokens
from msx_backend.llm.classification.scales import Scales, read_scales
from msx_backend.llm.embedding.dense import Dense
from msx_backend.llm.embedding.family import find_family
from msx_backend.llm.embedding.model import longest_of, shapes_for
from msx_backend.llm.embedding.pooling import Array, Pooling
from msx_backend.llm.embedding.shapes import BatchShape, BatchShapes
from msx_backend.llm.text import Tokenizer
from msx_backend.llm.text.files import read_object
from msx_sdk._internal.config import parse_model_config
from msx_sdk.context import Context
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore._runtime import setup

if TYPE_CHECKING:
    from msx_backend.llm.embedding.network import EmbeddingNetwork

LIMITS = "sentence_bert_config.json"


@dataclass(frozen=True)
class ClassificationModel:
    model_type: str
    labels: tuple[str, ...]
    longest: int
    """The most tokens of an input."""
    inputs: PairTokenizer
    shapes: BatchShapes
    network: EmbeddingNetwork
    head: tuple[Dense, ...]
    scales: Scales

    def __call__(self, texts: Sequence[PairTokens], shape: BatchShape) -> Array:
        """Texts that fit `shape` → the logits [texts, labels] float32"""
        sums, _ = self.network([text.ids for text in texts], shape, [text.segments for text in texts])
        vectors = sums[:, 0]
        for dense in self.head:
            vectors = dense(vectors)
        return vectors

    def warm_up(self, report: Callable[[str], None]) -> None:
        """Compiles the graphs of all shapes, so that none is compiled later."""
        self.network.warm_up(list(self.shapes), report, pairs=True)


def load_model(context: Context) -> ClassificationModel:
    """Set MindSpore up and read the archive's model. Raises HandlerLoadError."""
    target = setup(context)
    from msx_backend.llm.embedding.network import EmbeddingNetwork

    settings, folder = parse_model_config(context.model_yaml_config)[0], context.model_dir
    raw, family = read_object(folder, "config.json"), find_family(folder, target)
    if family.model_type not in HEADS:
        raise HandlerLoadError(
            f"config.json, model_type: {family.model_type} has no head here that scores texts; known are "
            f"{', '.join(HEADS)}"
        )
    head = read_head(folder, family.model_type, family.hidden)
    labels = read_labels(raw, head[-1].size)
    longest = longest_of(settings, read_object(folder, LIMITS).get("max_seq_length"), family)
    tokenizer = Tokenizer.from_folder(folder)
    return ClassificationModel(
        model_type=family.model_type,
        labels=labels,
        longest=longest,
        inputs=PairTokenizer(tokenizer, longest, family.vocab_size),
        shapes=shapes_for(settings, longest, target),
        network=EmbeddingNetwork(family.load(longest), Pooling(("cls",)), family.dtype),
        head=head,
        scales=read_scales(folder, raw, len(labels)),
    )
