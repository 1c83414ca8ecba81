"""vLLM's `/tokenize`, which is TGI's, too (it has `prompt` or `messages` where TGI's has `inputs`), and `/detokenize`.

https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html#tokenizer-api
"""

from __future__ import annotations

import msgspec

from msx_core.generation import TOKENIZE, Capabilities, TokenizeReply, TokenizeRequest
from msx_core.generation.wire import Tokens
from msx_frontend.generation.chat_request import ChatRequest, asked_tools, chat_tokens
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.replies import JsonReply, model_header
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.models.versions.model_version import ModelVersion


class _TokenizePrompt(msgspec.Struct, kw_only=True):
    prompt: str
    model: str | None = None
    add_special_tokens: bool = True
    return_token_strs: bool | None = None


class _TokenStrings(msgspec.Struct, kw_only=True):
    return_token_strs: bool | None = None


class Detokenize(msgspec.Struct, kw_only=True):
    tokens: Tokens
    model: str | None = None


class VllmText(msgspec.Struct):
    """The reply to `/detokenize`."""

    prompt: str


class VllmTokens(msgspec.Struct):
    """The reply to either; `token_strs` only where they are asked for. The OpenAPI document has TGI's, which generated
    clients read."""

    count: int
    max_model_len: int | None
    tokens: list[int]
    token_strs: list[str] | None = None


def tokenize_prompt(request: TextRequest) -> OperationReply[TokenizeReply]:
    asked = request.read(_TokenizePrompt)
    version = request.directory.find_for_tokens(asked.model)
    message = TokenizeRequest(prompt=asked.prompt, add_special_tokens=asked.add_special_tokens)
    return _reply(version, message, told=bool(asked.return_token_strs))


def tokenize_messages(request: TextRequest) -> OperationReply[TokenizeReply]:
    """Raises WrongParameter and NoChatTemplate."""
    asked, strings = request.read(ChatRequest), request.read(_TokenStrings)
    version = request.directory.find_for_tokens(asked.model)
    message = chat_tokens(asked, version, asked_tools(asked), request.image_finder(version))
    return _reply(version, message, told=bool(strings.return_token_strs))


def detokenize(request: TextRequest) -> OperationReply[TokenizeReply]:
    asked = request.read(Detokenize)
    version = request.directory.find_for_tokens(asked.model)

    def write(replies: list[TokenizeReply]) -> JsonReply:
        return JsonReply({"prompt": replies[0].text}, [model_header(version)])

    return OperationReply(version, TOKENIZE, [TokenizeRequest(ids=asked.tokens)], TokenizeReply, write)


def _reply(version: ModelVersion, message: TokenizeRequest, *, told: bool) -> OperationReply[TokenizeReply]:
    limit = (version.schema.capabilities or Capabilities()).max_total_tokens

    def write(replies: list[TokenizeReply]) -> JsonReply:
        spans = replies[0].tokens
        texts = [one.text for one in spans] if told else None
        return JsonReply(VllmTokens(len(spans), limit, [one.id for one in spans], texts), [model_header(version)])

    return OperationReply(version, TOKENIZE, [message], TokenizeReply, write)
