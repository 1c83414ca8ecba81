"""The base class of handlers that generate, tokenize, embed or classify text, whatever engine they use.

The server's OpenAI, TGI and KServe routes arrive as operations; `/predictions/{model}` and gRPC arrive as plain
predictions, which this class makes operations of, too.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from msx_core.generation.classify import by_label
from msx_core.generation.plain import request_of_item
from msx_core.generation.wire import decode, encode
from msx_sdk.context import Context
from msx_sdk.errors import InvalidInput, PredictionError
from msx_sdk.generation import (
    CLASSIFY,
    EMBED,
    GENERATE,
    LOAD_ADAPTER,
    SLEEP,
    TOKENIZE,
    Capabilities,
    ClassifyReply,
    ClassifyRequest,
    EmbedReply,
    EmbedRequest,
    GenerateDelta,
    GenerateRequest,
    LoadAdapterReply,
    LoadAdapterRequest,
    SleepReply,
    SleepRequest,
    TokenizeReply,
    TokenizeRequest,
)
from msx_sdk.handler import Data, Handler

__all__ = ["TextGenerationHandler"]

PLAIN_TEXT = "text/plain; charset=utf-8"

CLASSES = {"high": -1, "low": 1}
"""The classes of requests (the header `x-msx-priority`) as priorities; 0 is that of a normal one."""

T = TypeVar("T")


class TextGenerationHandler(Handler):
    """Implement `generate`, and what else the engine can do; many calls run at once on one event loop.

    What a method raises ends its request alone: InvalidInput for a wrong value, PredictionError(429, …) when there is
    no room. A client that leaves, or whose time is up, cancels the method at its next await.
    """

    def generate(self, request: GenerateRequest, context: Context) -> AsyncIterator[GenerateDelta]:
        """`async def` with `yield`: the texts as they grow. The last delta of each has a `finish_reason`."""
        raise PredictionError(501, f"{type(self).__name__} does not generate text")

    async def tokenize(self, request: TokenizeRequest, context: Context) -> TokenizeReply | msgspec.Raw:
        """The reply may be encoded already, as MessagePack: `msgspec.Raw`."""
        raise PredictionError(501, f"{type(self).__name__} does not tokenize text")

    async def embed(self, request: EmbedRequest, context: Context) -> EmbedReply:
        raise PredictionError(501, f"{type(self).__name__} does not embed text")

    async def classify(self, request: ClassifyRequest, context: Context) -> ClassifyReply:
        raise PredictionError(501, f"{type(self).__name__} does not classify text")

    async def load_adapter(self, request: LoadAdapterRequest, context: Context) -> LoadAdapterReply:
        """Checks an adapter, and changes nothing: requests bring its `AdapterFiles`. Raises InvalidInput where it does
        not fit the model."""
        raise PredictionError(501, f"{type(self).__name__} does not load adapters")

    async def sleep(self, request: SleepRequest, context: Context) -> SleepReply:
        """Releases memory, or has it back. No other request runs meanwhile, and none comes before it is awake."""
        raise PredictionError(501, f"{type(self).__name__} does not sleep")

    def capabilities(self) -> Capabilities:
        """Features of this handler, read after `initialize`. By default those that it overrides, without limits."""
        return Capabilities(
            generate=_overrides(self, "generate"),
            tokenize=_overrides(self, "tokenize"),
            embed=_overrides(self, "embed"),
            classify=_overrides(self, "classify"),
            load_adapter=_overrides(self, "load_adapter"),
            sleep=_overrides(self, "sleep"),
            model_id=self.context.model_name,
        )

    async def handle(self, data: Data, context: Context) -> AsyncIterator[list[Any]]:
        """Dispatch one request by its operation. The worker calls it."""
        operation = context.operation()
        if operation == GENERATE:
            request = _in_its_class(_message(data, GenerateRequest), context)
            async with _closing(self.generate(request, context)) as deltas:
                async for delta in deltas:
                    yield [encode(delta)]
        elif operation == TOKENIZE:
            yield [encode(await self.tokenize(_message(data, TokenizeRequest), context))]
        elif operation == EMBED:
            yield [encode(await self.embed(_message(data, EmbedRequest), context))]
        elif operation == CLASSIFY:
            yield [encode(await self.classify(_message(data, ClassifyRequest), context))]
        elif operation == LOAD_ADAPTER:
            yield [encode(await self.load_adapter(_message(data, LoadAdapterRequest), context))]
        elif operation == SLEEP:
            yield [encode(await self.sleep(_message(data, SleepRequest), context))]
        elif context.get_request_header(0, "describe") == "True":
            yield [self.describe()]
        else:
            async with _closing(self._predict(data[0], context)) as pieces:
                async for piece in pieces:
                    yield [piece]

    def describe(self) -> Any:
        return msgspec.to_builtins(self.capabilities())

    async def _predict(self, item: dict[str, Any], context: Context) -> AsyncGenerator[Any, None]:
        """A plain prediction: the text in pieces, an embedding as JSON numbers, or scores by label."""
        if context.get_request_header(0, "explain") == "True":
            raise PredictionError(501, f"{type(self).__name__} has no explanations")
        offered = self.capabilities()
        request = request_of_item(item, offered, context.info.text_limits)
        if isinstance(request, EmbedRequest):
            context.set_response_content_type(0, "application/json")
            yield memoryview((await self.embed(request, context)).embedding).cast("f").tolist()
            return
        if isinstance(request, ClassifyRequest):
            scores = (await self.classify(request, context)).scores
            yield by_label(offered.labels, scores)
            return
        context.set_response_content_type(0, PLAIN_TEXT)
        async with _closing(self.generate(_in_its_class(request, context), context)) as deltas:
            async for delta in deltas:
                if delta.text:
                    yield delta.text


def _message(data: Data, kind: type[T]) -> T:
    try:
        return decode(data[0]["body"], kind)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"the request is not a valid {kind.__name__}: {error}") from None


def _in_its_class(request: GenerateRequest, context: Context) -> GenerateRequest:
    """A request without a priority has that of its class, which the server has checked."""
    priority = CLASSES.get(str(context.get_request_header(0, "x-msx-priority") or "").strip().lower(), 0)
    return msgspec.structs.replace(request, priority=priority) if priority and not request.priority else request


def _overrides(handler: TextGenerationHandler, name: str) -> bool:
    return getattr(type(handler), name) is not getattr(TextGenerationHandler, name)


@asynccontextmanager
async def _closing(iterator: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T], None]:
    """Closes the generator when the client leaves: what an engine holds for a request is freed at once."""
    try:
        yield iterator
    finally:
        if isinstance(iterator, AsyncGenerator):
            await iterator.aclose()
