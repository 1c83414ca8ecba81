"""An embedding model as the handler uses it: limits, texts to token ids, token ids to vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msx_core.config import ModelConfig, parse_model_config
from msx_core.mindspore.options import read_options
from msx_core.mindspore.runtime import setup
from msx_llm.embedding.family import EncoderFamily, find_family
from msx_llm.embedding.inputs import LIMIT, InputFiles, InputTokenizer
from msx_llm.embedding.pooling import Array
from msx_llm.embedding.sentence import EmbeddingOptions, Sentence, read_sentence
from msx_llm.embedding.shapes import BatchShape, BatchShapes, shapes_of
from msx_llm.kernels.devices import engine_device
from msx_llm.text.tokenizing import Tokenizing
from msx_sdk.context import Context
from msx_sdk.errors import HandlerLoadError

if TYPE_CHECKING:
    from msx_llm.embedding.network import EmbeddingNetwork

ROWS = (1, 4, 8, 32)
LENGTHS = (32, 128, 512, 2048)


@dataclass(frozen=True)
class EmbeddingModel:
    model_type: str
    size: int
    """The size of an embedding."""
    longest: int
    """The most tokens of an input."""
    inputs: InputTokenizer
    texts: Tokenizing[InputTokenizer]
    """Calls `inputs`."""
    shapes: BatchShapes
    sentence: Sentence
    network: EmbeddingNetwork

    def __call__(self, texts: Sequence[Sequence[int]], shape: BatchShape) -> Array:
        """Token ids of texts that fit `shape` → [texts, size] float32, not yet normalized"""
        return self.sentence.vectors(*self.network(texts, shape))

    def warm_up(self, report: Callable[[str], None]) -> None:
        """Compiles the graphs of all shapes, so that none is compiled later."""
        self.network.warm_up(list(self.shapes), report)


def load_model(context: Context) -> EmbeddingModel:
    """Set MindSpore up and read the archive's model. Raises HandlerLoadError."""
    target = setup(context)
    from msx_llm.embedding.network import EmbeddingNetwork

    settings = parse_model_config(context.model_yaml_config)[0]
    sentence = read_sentence(context.model_dir, read_options(context, "embedding", EmbeddingOptions))
    family = find_family(sentence.folder, target)
    longest = longest_of(settings, sentence.longest, family)
    files = InputFiles(
        folder=str(sentence.folder),
        longest=longest,
        vocab_size=family.vocab_size,
        lower_case=sentence.lower_case,
        prompts=sentence.prompts,
    )
    inputs = files.load()
    return EmbeddingModel(
        model_type=family.model_type,
        size=sentence.size(family.hidden),
        longest=longest,
        inputs=inputs,
        texts=Tokenizing(inputs, files, context.info.largest_body),
        shapes=shapes_for(settings, longest, target),
        sentence=sentence,
        network=EmbeddingNetwork(family.load(longest), sentence.pooling, family.dtype),
    )


def longest_of(settings: ModelConfig, own: int | None, family: EncoderFamily) -> int:
    """The yaml may allow more than `own`, sentence-transformers' default, but not more than the network has.

    Without it a text has no more tokens than the longest bucket: attention's memory grows with their square.
    """
    wanted = settings.max_input_tokens
    if wanted is None:
        enough = max(*LENGTHS, *(settings.context_buckets or ()))
        return min(own or family.context, family.context, enough)
    if wanted > family.context:
        raise HandlerLoadError(f"{LIMIT}: {wanted} is more than the model's context of {family.context} tokens")
    return wanted


def shapes_for(settings: ModelConfig, longest: int, target: str) -> BatchShapes:
    rows, lengths = settings.slot_buckets or ROWS, settings.context_buckets or LENGTHS
    tokens = settings.max_batch_total_tokens or engine_device(target).embedding_tokens
    return shapes_of(rows, lengths, longest, tokens)
