"""The calls of a client, as HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msx_client.address import Part
from msx_client.call import HttpCall, Reply
from msx_client.http.content import JSON, decode, decode_json, encode
from msx_client.http.infer import decode_infer, encode_infer
from msx_client.http.streams import Events, Pieces
from msx_client.texts import (
    ChatReply,
    Completion,
    Ranked,
    TextPiece,
    chat_reply_of,
    completion_of,
    piece_of,
    ranked_of,
    vectors_of,
)

if TYPE_CHECKING:
    import numpy as np

SEQUENCE_ID, SEQUENCE_START, SEQUENCE_END = (f"ts_request_sequence_{name}" for name in ("id", "start", "end"))


class HttpCalls:
    """Each method makes one call; which version is the default one's is decided by the server."""

    # -- predictions --

    def predict(
        self,
        model: str,
        data: Any,
        version: str | None,
        method: str | None,
        headers: Mapping[str, str],
    ) -> HttpCall[Any]:
        content, kind = encode(data)
        sent = {"content-type": kind, **headers}
        return HttpCall("inference", "POST", _prediction(model, version, method), decode, headers=sent, content=content)

    def stream(
        self,
        model: str,
        data: Any,
        version: str | None,
        method: str | None,
        headers: Mapping[str, str],
    ) -> HttpCall[bytes]:
        content, kind = encode(data)
        sent = {"content-type": kind, **headers}
        path = _prediction(model, version, method)
        return HttpCall("inference", "POST", path, decoder=Pieces, headers=sent, content=content)

    def in_sequence(
        self, model: str, data: Any, version: str | None, sequence: str, first: bool, last: bool
    ) -> HttpCall[Any]:
        marks = {SEQUENCE_START: first, SEQUENCE_END: last}
        headers = {SEQUENCE_ID: sequence, **{name: "true" for name, on in marks.items() if on}}
        return self.predict(model, data, version, None, headers)

    def infer(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray[Any, Any]],
        outputs: Sequence[str] | None,
        version: str | None,
        parameters: Mapping[str, Any],
        headers: Mapping[str, str],
    ) -> HttpCall[dict[str, np.ndarray[Any, Any]]]:
        content, sent = encode_infer(inputs, outputs, parameters)
        path = f"/v2/models/{_name(model)}{f'/versions/{_name(version)}' if version else ''}/infer"
        return HttpCall("inference", "POST", path, decode_infer, headers={**sent, **headers}, content=content)

    # -- texts --

    def generate(self, model: str, prompt: str, options: Mapping[str, Any]) -> HttpCall[Completion]:
        body = {"model": model, "prompt": prompt, **options}
        return _post("/v1/completions", body, lambda reply: completion_of(decode_json(reply)))

    def generate_stream(self, model: str, prompt: str, options: Mapping[str, Any]) -> HttpCall[TextPiece]:
        return _streamed("/v1/completions", {"model": model, "prompt": prompt, **options})

    def chat(
        self, model: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> HttpCall[ChatReply]:
        body = {"model": model, "messages": list(messages), **options}
        return _post("/v1/chat/completions", body, lambda reply: chat_reply_of(decode_json(reply)))

    def chat_stream(
        self, model: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> HttpCall[TextPiece]:
        return _streamed("/v1/chat/completions", {"model": model, "messages": list(messages), **options})

    def embed(self, model: str, texts: Sequence[str], options: Mapping[str, Any]) -> HttpCall[list[list[float]]]:
        body = {"model": model, "input": list(texts), **options}
        return _post("/v1/embeddings", body, lambda reply: vectors_of(decode_json(reply)))

    def rerank(
        self, model: str, query: str, documents: Sequence[str], options: Mapping[str, Any]
    ) -> HttpCall[list[Ranked]]:
        body = {"model": model, "query": query, "documents": list(documents), **options}
        return _post("/v1/rerank", body, lambda reply: ranked_of(decode_json(reply)))

    # -- health and metadata --

    def ready(self, model: str | None) -> HttpCall[Any]:
        path = f"/v2/models/{_name(model)}/ready" if model else "/readyz"
        return HttpCall("inference", "GET", path, lambda reply: None)

    def metadata(self, model: str, version: str | None) -> HttpCall[Any]:
        path = f"/v2/models/{_name(model)}{f'/versions/{_name(version)}' if version else ''}"
        return HttpCall("inference", "GET", path, decode_json)

    # -- management --

    def register(self, url: str, options: Mapping[str, Any]) -> HttpCall[str]:
        body = json.dumps({"url": url, **options}).encode()
        headers = {"content-type": JSON}
        return HttpCall("management", "POST", "/models", _status, headers=headers, content=body)

    def scale(self, model: str, version: str | None, options: Mapping[str, Any]) -> HttpCall[str]:
        return HttpCall("management", "PUT", _managed(model, version), _status, params=_parameters(options))

    def describe(self, model: str, version: str | None, customized: bool) -> HttpCall[list[dict[str, Any]]]:
        params = {"customized": "true"} if customized else {}
        return HttpCall("management", "GET", _managed(model, version), decode_json, params=params)

    def models(self, limit: int, page: str) -> HttpCall[dict[str, Any]]:
        params = {"limit": str(limit), "next_page_token": page}
        return HttpCall("management", "GET", "/models", decode_json, params=params)

    def unregister(self, model: str, version: str | None) -> HttpCall[str]:
        return HttpCall("management", "DELETE", _managed(model, version), _status)

    def set_default(self, model: str, version: str) -> HttpCall[str]:
        return HttpCall("management", "PUT", f"{_managed(model, version)}/set-default", _status)

    def replace_aliases(self, model: str, aliases: Sequence[str]) -> HttpCall[str]:
        content, headers = json.dumps({"aliases": [*aliases]}).encode(), {"content-type": JSON}
        return HttpCall(
            "management", "PUT", f"/models/{_name(model)}/aliases", _status, headers=headers, content=content
        )

    def show_traffic(self, model: str) -> HttpCall[dict[str, Any]]:
        return HttpCall("management", "GET", f"/models/{_name(model)}/traffic", decode_json)

    def divide_traffic(self, model: str, weights: Mapping[str, float], sticky_header: str) -> HttpCall[Any]:
        body = {"weights": dict(weights), **({"stickyHeader": sticky_header} if sticky_header else {})}
        path = f"/models/{_name(model)}/traffic"
        content, headers = json.dumps(body).encode(), {"content-type": JSON}
        return HttpCall("management", "PUT", path, _status, headers=headers, content=content)

    def end_traffic(self, model: str) -> HttpCall[Any]:
        return HttpCall("management", "DELETE", f"/models/{_name(model)}/traffic", _status)


def _name(part: str) -> str:
    return quote(part, safe="")


def _prediction(model: str, version: str | None, method: str | None) -> str:
    path = f"/predictions/{_name(model)}{f'/{_name(version)}' if version else ''}"
    return f"{path}:{_name(method)}" if method else path


def _managed(model: str, version: str | None) -> str:
    return f"/models/{_name(model)}{f'/{_name(version)}' if version else ''}"


def _parameters(options: Mapping[str, Any]) -> dict[str, str]:
    """As a query, in which a truth value is `true` or `false`."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def _post(path: str, body: Mapping[str, Any], read: Any, part: Part = "inference") -> HttpCall[Any]:
    content = json.dumps(body).encode()
    return HttpCall(part, "POST", path, read, headers={"content-type": JSON}, content=content)


def _streamed(path: str, body: Mapping[str, Any]) -> HttpCall[TextPiece]:
    content = json.dumps({**body, "stream": True}).encode()
    make = partial(Events, piece_of)
    return HttpCall("inference", "POST", path, decoder=make, headers={"content-type": JSON}, content=content)


def _status(reply: Reply) -> str:
    """The sentence of a change."""
    said = decode_json(reply)
    return str(said.get("status", "")) if isinstance(said, dict) else str(said)
