"""`--handler sequence_classification`: a text or a pair of texts in, a score for each label out."""

from typing import Any

from msgspec import Raw

from msx_llm.classification.inputs import PairCall, PairTokens
from msx_llm.classification.model import load_model
from msx_llm.embedding.batcher import Batcher
from msx_llm.embedding.pooling import Array
from msx_llm.embedding.shapes import BatchShape
from msx_llm.text.requests import size_of
from msx_llm.text.text_calls import TokenizeCall
from msx_sdk.context import Context
from msx_sdk.generation import Capabilities, ClassifyReply, ClassifyRequest, TokenizeReply, TokenizeRequest
from msx_sdk.text_generation import TextGenerationHandler


class ClassificationHandler(TextGenerationHandler):
    """Many requests at once, one text or pair each; those that wait share a call of the network."""

    parallel_types = ()

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.model = load_model(context)
        self.model.warm_up(context.report_progress)
        self.batcher = Batcher(self.model.shapes, self._run)

    async def classify(self, request: ClassifyRequest, context: Context) -> ClassifyReply:
        self.model.inputs.check_size(request)
        size = len(request.input) + len(request.pair or "")
        tokens = await self.model.texts.run(PairCall(request=request), size)
        logits = await self.batcher.embed(tokens)
        scores: list[Any] = self.model.scales.apply(request.scale, logits).tolist()
        return ClassifyReply(scores=tuple(scores), prompt_tokens=len(tokens))

    async def tokenize(self, request: TokenizeRequest, context: Context) -> TokenizeReply | Raw:
        return Raw(await self.model.texts.run(TokenizeCall(request=request), size_of(request)))

    def capabilities(self) -> Capabilities:
        labels = self.model.labels
        return Capabilities(
            classify=True,
            rerank=len(labels) == 1,
            labels=labels,
            tokenize=True,
            model_id=self.context.model_name,
            model_type=self.model.model_type,
            max_input_tokens=self.model.longest,
        )

    async def close(self) -> None:
        self.model.texts.close()

    async def _run(self, texts: list[PairTokens], shape: BatchShape) -> Array:
        return await self.context.run(self.model, texts, shape)
