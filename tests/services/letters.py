"""Models that tell of a text how many of its letters are a and b: as a vector, or as two labels with scores."""

import struct

from msx_sdk.generation import Capabilities, ClassifyReply, EmbedReply
from msx_sdk.text_generation import TextGenerationHandler


def shares(text):
    counts = [text.count(letter) for letter in "ab"]
    length = sum(count * count for count in counts) ** 0.5 or 1.0
    return [count / length for count in counts]


class Vectors(TextGenerationHandler):
    def capabilities(self):
        return Capabilities(embed=True, tokenize=True, max_input_tokens=100, embedding_size=2)

    async def embed(self, request, context):
        text = request.input if request.truncate is None else cut(request)
        return EmbedReply(embedding=struct.pack("<2f", *shares(text)), prompt_tokens=1)


class Labels(TextGenerationHandler):
    def capabilities(self):
        return Capabilities(classify=True, tokenize=True, labels=("a", "b"), max_input_tokens=100)

    async def classify(self, request, context):
        return ClassifyReply(scores=tuple(shares(request.input)), prompt_tokens=1)


def cut(request):
    """A letter is a token."""
    return request.input[-request.truncate :] if request.truncate_left else request.input[: request.truncate]
