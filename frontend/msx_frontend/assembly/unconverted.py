"""The APIs that are not families yet: language models."""

from __future__ import annotations

from msx_frontend.generation.endpoint import LanguageModels
from msx_frontend.net.http.call import Call
from msx_frontend.net.http.response_head import ResponseHead
from msx_frontend.net.http.wire import Receive


class Unconverted:
    def __init__(self, language_models: LanguageModels) -> None:
        self._language_models = language_models

    def serves(self, method: str, path: str, *, owned: bool) -> bool:
        return self._language_models.serves(method, path)

    async def __call__(self, call: Call, receive: Receive, send: ResponseHead) -> int:
        send.errors_close = False
        return await self._language_models(call, receive, send)
