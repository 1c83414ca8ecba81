"""A language model whose text is the number of its process. The prompt `wait` waits for its client to leave."""

import asyncio
import os

from msx_sdk.generation import Capabilities, GenerateDelta, Token, Usage
from msx_sdk.text_generation import TextGenerationHandler


class WhichWorker(TextGenerationHandler):
    def capabilities(self):
        return Capabilities(generate=True, chat=True, adapters=("x",), max_concurrent=64)

    async def generate(self, request, context):
        text = str(os.getpid())
        yield GenerateDelta(text=text, tokens=(Token(id=0, text=text),))
        if request.prompt == "wait":
            await asyncio.sleep(3600)
        yield GenerateDelta(finish_reason="eos", usage=Usage(prompt=1, completion=1))
