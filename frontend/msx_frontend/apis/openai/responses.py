"""OpenAI's `/v1/responses`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from msx_core.generation import GENERATE, Capabilities
from msx_core.request_ids import new_request_id
from msx_frontend.apis.openai.background import NO_BACKGROUND, BackgroundReply, BackgroundResponses, is_late
from msx_frontend.apis.openai.item_references import REFERENCE, has_references, kind_of
from msx_frontend.apis.openai.kept_responses import NOT_KEPT, KeptResponses
from msx_frontend.apis.openai.response_items import ItemReader
from msx_frontend.apis.openai.response_shape import ResponseShape, ResponseStream, items_of_message
from msx_frontend.apis.openai.response_tools import ResponseTools
from msx_frontend.apis.openai.responses_request import (
    NAMES,
    ResponsesRequest,
    chat_request,
    items_of,
    response_names,
    responses_ignored,
)
from msx_frontend.generation.calls import reader_of
from msx_frontend.generation.chat_request import asked_tools, chat_generation, chat_ignored
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.generation import Generation, Text
from msx_frontend.generation.replies import CompleteTextReply, JsonReply, StreamedTextReply
from msx_frontend.generation.text_request import ReadFirst, TextRequest
from msx_frontend.generation.written_message import message_of
from msx_net.keys import owner_of_key

Keep = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]


class GivenItems(NamedTuple):
    """Items of the conversation that a request goes on with, and its own."""

    earlier: list[dict[str, Any]]
    own: list[dict[str, Any]]


class Responses:
    """`kept` is None where the server keeps no responses, `background` where it defers no requests."""

    def __init__(self, kept: KeptResponses | None, background: BackgroundResponses | None) -> None:
        self._kept, self._background = kept, background

    def answer(self, request: TextRequest) -> StreamedTextReply | CompleteTextReply | BackgroundReply:
        asked = request.read(ResponsesRequest)
        earlier, own = self._given(request, asked)
        if asked.stream:
            request.will_stream()
        request.names = NAMES
        version, adapter, name = request.directory.find_adapted(asked.model, GENERATE)
        images, given = request.image_finder(version), ResponseTools(asked.tools, own, request.api.limits)
        request.names = {**given.places, **NAMES}
        items = ItemReader(images, given)
        items.read(earlier, "previous_response_id")
        items.read(own, "input")
        chat = chat_request(asked, given, items.messages)
        tools = asked_tools(chat)
        request.names = response_names(chat, tools, given)
        unused = [*responses_ignored(asked, keeps=self._kept is not None), *given.ignored, *items.ignored]
        request.ignored = [*chat_ignored(chat, tools, version), *unused, *images.ignored]
        request.session = asked.prompt_cache_key or ""
        generation = Generation(version, [chat_generation(chat, version, tools, images, adapter)], request.api.limits)
        offered = version.schema.capabilities or Capabilities()
        reader = reader_of(tools, offered, chat.template_values, reasoning=asked.include_reasoning)
        keep = self._keep_of(request, asked, [*earlier, *own])
        late = asked.background is True and is_late(request)
        id = request.id if keep is None or late else new_request_id()
        shape = ResponseShape(asked, id, name, kept=keep is not None)
        if asked.background and not late:
            return BackgroundReply(self._for_later(asked), shape.begun())
        if asked.stream:
            stream = ResponseStream(shape, generation, reader, given)
            return StreamedTextReply(generation, stream, [], None if keep is None else partial(_keep_end, keep, stream))

        def write(texts: list[Text]) -> JsonReply:
            made = items_of_message(shape.id, message_of(texts[0], reader), given)
            return JsonReply(shape.ended(made, texts[0].finish_reason, generation.usage))

        return CompleteTextReply(generation, write, keep)

    def _for_later(self, asked: ResponsesRequest) -> BackgroundResponses:
        """Raises WrongParameter."""
        if self._background is None:
            raise WrongParameter("background", NO_BACKGROUND)
        if asked.stream:
            raise WrongParameter("background", "not with stream: ask for the response until it has ended")
        return self._background

    def _given(self, request: TextRequest, asked: ResponsesRequest) -> GivenItems:
        """Read first what is kept of it. Raises ReadFirst, WrongParameter."""
        own = items_of(asked)
        if not asked.previous_response_id and not has_references(own):
            return GivenItems([], own)
        if self._kept is None:
            raise _not_kept(asked, own)
        if request.earlier is None:
            raise ReadFirst(partial(self._read, self._kept, request, asked))
        read: GivenItems = request.earlier
        return read

    async def _read(self, kept: KeptResponses, request: TextRequest, asked: ResponsesRequest) -> None:
        owner, id = owner_of_key(request.asker), asked.previous_response_id
        earlier = await kept.conversation(id, owner, request.api.limits) if id else []
        request.earlier = GivenItems(earlier, await kept.referenced(items_of(asked), owner))

    def _keep_of(self, request: TextRequest, asked: ResponsesRequest, items: list[dict[str, Any]]) -> Keep | None:
        """Keeps the response before it is sent; None where it is not kept. Its id is the server's own: clients choose
        the ids of their requests."""
        kept = self._kept
        if kept is None or asked.store is False:
            return None

        async def keep(response: dict[str, Any]) -> None:
            if not await kept.keep(response, items, owner_of_key(request.asker)):
                response["store"] = False
                request.ignore(["store"])

        return keep


def _not_kept(asked: ResponsesRequest, own: list[dict[str, Any]]) -> WrongParameter:
    if asked.previous_response_id:
        return WrongParameter("previous_response_id", f"{NOT_KEPT} Send the whole conversation as input.")
    place = next(number for number, item in enumerate(own) if kind_of(item) == REFERENCE)
    return WrongParameter(f"input[{place}]", f"{NOT_KEPT} Send the item itself.")


async def _keep_end(keep: Keep, stream: ResponseStream) -> None:
    await keep(stream.end())
