"""A language model that answers each prompt with the same token."""

from __future__ import annotations

from collections.abc import AsyncIterator

from msx_sdk import Context
from msx_sdk.generation import Capabilities, GenerateDelta, GenerateRequest, Token, Usage
from msx_sdk.text_generation import TextGenerationHandler

TOKEN = Token(id=7, text=" yes", logprob=-0.5)


class OneToken(TextGenerationHandler):
    def capabilities(self) -> Capabilities:
        return Capabilities(generate=True, model_id="benchmarks/one_token", max_concurrent=64)

    async def generate(self, request: GenerateRequest, context: Context) -> AsyncIterator[GenerateDelta]:
        usage = Usage(prompt=200, completion=1)
        yield GenerateDelta(index=0, text=TOKEN.text, tokens=(TOKEN,), finish_reason="length", usage=usage)
