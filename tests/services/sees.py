"""A language model that says what images it sees, up to two in a request: format, size, bytes, and the first digits of
the digest, which has to be that of the bytes; and the parts of its last message, or its prompt."""

import hashlib

from msx_sdk.generation import Capabilities, GenerateDelta, TextSpan, TokenizeReply, Usage
from msx_sdk.text_generation import TextGenerationHandler


class Sees(TextGenerationHandler):
    def capabilities(self):
        return Capabilities(generate=True, chat=True, tokenize=True, max_images=2)

    async def generate(self, request, context):
        yield GenerateDelta(text=seen(request))
        yield GenerateDelta(finish_reason="eos", usage=Usage(prompt=1, completion=1))

    async def tokenize(self, request, context):
        return TokenizeReply(tokens=[TextSpan(id=1, text="", start=0, stop=0)], text=seen(request))


def seen(request):
    content = request.prompt if request.messages is None else request.messages[-1]["content"]
    parts = content if isinstance(content, str) else "+".join(part["type"] for part in content)
    return "; ".join([*map(image, request.images), parts])


def image(one):
    assert one.digest == hashlib.sha256(one.data).hexdigest()
    place = "" if one.at is None else f" at {one.at}"
    return f"{one.media_type} {one.width}x{one.height} {len(one.data)} {one.digest[:8]}{place}"
