"""`--handler embedding`: text in, vector out, for encoders and decoders in Hugging Face's layout."""

from collections.abc import Sequence

from msgspec import Raw

from msx_llm.embedding.batcher import Batcher
from msx_llm.embedding.inputs import InputCall
from msx_llm.embedding.model import load_model
from msx_llm.embedding.pooling import Array
from msx_llm.embedding.shapes import BatchShape
from msx_llm.text.requests import size_of
from msx_llm.text.text_calls import TokenizeCall
from msx_sdk.context import Context
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import Capabilities, EmbedReply, EmbedRequest, TokenizeReply, TokenizeRequest
from msx_sdk.text_generation import TextGenerationHandler


class EmbeddingHandler(TextGenerationHandler):
    """Many requests at once, one text each; texts that wait share a call of the network."""

    parallel_types = ()

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.model = load_model(context)
        self.model.warm_up(context.report_progress)
        self.batcher = Batcher(self.model.shapes, self._run)

    async def embed(self, request: EmbedRequest, context: Context) -> EmbedReply:
        if (request.dimensions or 0) > self.model.size:
            raise InvalidInput(f"dimensions: {request.dimensions} is more than the {self.model.size} of this model")
        self.model.inputs.check_size(request)
        size = len(request.input) if isinstance(request.input, str) else 0
        tokens = await self.model.texts.run(InputCall(request=request), size)
        vector = await self.batcher.embed(tokens)
        vector = self.model.sentence.finish(vector, request.dimensions, request.normalize)
        return EmbedReply(embedding=vector.astype("<f4").tobytes(), prompt_tokens=len(tokens))

    async def tokenize(self, request: TokenizeRequest, context: Context) -> TokenizeReply | Raw:
        return Raw(await self.model.texts.run(TokenizeCall(request=request), size_of(request)))

    def capabilities(self) -> Capabilities:
        return Capabilities(
            embed=True,
            tokenize=True,
            model_id=self.context.model_name,
            model_type=self.model.model_type,
            max_input_tokens=self.model.longest,
            embedding_size=self.model.size,
            prompts=tuple(self.model.sentence.prompts.texts),
        )

    async def close(self) -> None:
        self.model.texts.close()

    async def _run(self, texts: list[Sequence[int]], shape: BatchShape) -> Array:
        return await self.context.run(self.model, texts, shape)
