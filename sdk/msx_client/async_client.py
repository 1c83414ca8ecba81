"""The client, for code on an asyncio loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from msx_client.address import Part
from msx_client.async_jobs import AsyncJobs
from msx_client.async_models import AsyncModels
from msx_client.call import HttpCall
from msx_client.errors import MsxError
from msx_client.patience import Patience
from msx_client.sequence import AsyncRequestSequence
from msx_client.setup import Setup
from msx_client.texts import ChatReply, Completion, Ranked, TextPiece

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np

T = TypeVar("T")


class AsyncClient:
    """Calls one server from one event loop. Connections are kept and shared. Every method raises `MsxError`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        management_key: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        management_url: str | None = None,
        timeout: float = 120.0,
        connect_timeout: float = 5.0,
        retries: int = 2,
        connections: int = 100,
        http2: bool = False,
        verify: bool | str = True,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Nothing is sent yet.

        url: `http://host:port`, `https://…`, `grpc://host:port` or `grpcs://…`; else the variable MSX_URL, else the
            server's default. The management address is that of MSX_MANAGEMENT_URL, or the port beside it.
        key, management_key, key_file: see `msx_client.keys`.
        timeout: seconds that the server may be silent; over gRPC, that a call may take.
        retries: how often a call is made again of which nothing has run (`msx_client.retry`).
        verify: False, or a file with the certificates to trust.
        headers: of every request; over gRPC its metadata.

        Raises ValueError, OSError.
        """
        self._setup = Setup(
            url,
            management_url,
            key,
            management_key,
            key_file,
            timeout=timeout,
            connect_timeout=connect_timeout,
            retries=retries,
            connections=connections,
            http2=http2,
            verify=verify,
            headers=headers or {},
        )
        self._calls = self._setup.calls
        self.models = AsyncModels(self._run, self._calls)
        self.jobs, self.all_jobs = self._jobs("inference"), self._jobs("management")
        """Jobs of the key; those of all keys, for who has the management key."""

    def _jobs(self, part: Part) -> AsyncJobs:
        return AsyncJobs(self._run, self._stream, self._setup.job_maker(part))

    # -- predictions --

    async def predict(
        self,
        model: str,
        data: Any = b"",
        *,
        version: str | None = None,
        method: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """The handler's answer. `data`: bytes, str, a NumPy array (as an `.npy` file), or what JSON can say.

        JSON comes back as its value, text as str, `.npy` as an array, the rest as bytes; over gRPC, which does not have
        content types, always bytes.
        """
        return await self._run(self._calls.predict(model, data, version, method, headers or {}), timeout)

    def stream(
        self,
        model: str,
        data: Any = b"",
        *,
        version: str | None = None,
        method: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[bytes]:
        """The pieces of an answer as they are made. Closing the iterator cancels the request."""
        return self._stream(self._calls.stream(model, data, version, method, headers or {}), timeout)

    async def infer(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray[Any, Any]],
        *,
        outputs: Sequence[str] | None = None,
        version: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Tensors in, tensors out, by name, as bytes (KServe v2). Texts are arrays of objects."""
        call = self._calls.infer(model, inputs, outputs, version, parameters or {}, headers or {})
        return await self._run(call, timeout)

    def sequence(self, model: str, *, version: str | None = None) -> AsyncRequestSequence:
        """Requests to a stateful model that belong together."""
        return AsyncRequestSequence(self._run, self._calls, model, version)

    # -- texts --

    async def generate(self, model: str, prompt: str, *, timeout: float | None = None, **options: Any) -> Completion:
        """A text that goes on from the prompt. Options are OpenAI's: `max_tokens`, `temperature`, `stop`, …"""
        return await self._run(self._calls.generate(model, prompt, options), timeout)

    def generate_stream(
        self, model: str, prompt: str, *, timeout: float | None = None, **options: Any
    ) -> AsyncIterator[TextPiece]:
        return self._stream(self._calls.generate_stream(model, prompt, options), timeout)

    async def chat(
        self, model: str, messages: Sequence[Mapping[str, Any]], *, timeout: float | None = None, **options: Any
    ) -> ChatReply:
        """The next message. `messages` and options are OpenAI's: `tools`, `response_format`, …"""
        return await self._run(self._calls.chat(model, messages, options), timeout)

    def chat_stream(
        self, model: str, messages: Sequence[Mapping[str, Any]], *, timeout: float | None = None, **options: Any
    ) -> AsyncIterator[TextPiece]:
        return self._stream(self._calls.chat_stream(model, messages, options), timeout)

    async def embed(
        self, model: str, texts: str | Sequence[str], *, timeout: float | None = None, **options: Any
    ) -> list[list[float]]:
        """A vector for each text."""
        rows = [texts] if isinstance(texts, str) else list(texts)
        if not self._setup.address.grpc:
            return await self._run(self._calls.embed(model, rows, options), timeout)
        return [(await self._run(self._calls.embed(model, [text], options), timeout))[0] for text in rows]

    async def rerank(
        self, model: str, query: str, documents: Sequence[str], *, timeout: float | None = None, **options: Any
    ) -> list[Ranked]:
        """The documents by how well they fit the query, the best first (`/v1/rerank`, in Cohere's and Jina's shape)."""
        return await self._run(self._calls.rerank(model, query, documents, options), timeout)

    # -- health and metadata --

    async def is_ready(self, model: str | None = None) -> bool:
        """Whether the server (or the model) takes requests now. Raises MsxError where nobody answers."""
        try:
            await self._once(self._calls.ready(model), None)
        except MsxError as error:
            if error.status == 503:
                return False
            raise
        return True

    async def wait_ready(self, model: str | None = None, *, timeout: float = 120.0) -> None:
        """Until the server (or the model) takes requests; a server that does not answer yet is waited for, too."""
        patience = Patience(timeout)
        while True:
            try:
                await self._once(self._calls.ready(model), None)
                return
            except MsxError as error:
                pause = patience.pause(error)
            await asyncio.sleep(pause)

    async def metadata(self, model: str, *, version: str | None = None) -> dict[str, Any]:
        """Versions, platform, inputs and outputs (KServe v2)."""
        found: dict[str, Any] = await self._run(self._calls.metadata(model, version), None)
        return found

    # -- its life --

    async def close(self) -> None:
        if "_transport" in self.__dict__:
            await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @cached_property
    def _transport(self) -> Any:
        """Made by the first call, because it imports a library."""
        return self._setup.async_transport()

    async def _run(self, call: HttpCall[T], timeout: float | None = None) -> T:
        attempts = self._setup.attempts(call.part)
        while True:
            try:
                return await self._once(call, timeout)
            except MsxError as error:
                pause = attempts.pause(error)
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _once(self, call: HttpCall[T], timeout: float | None) -> T:
        result: T = await self._transport.run(call, timeout)
        return result

    async def _stream(self, call: HttpCall[T], timeout: float | None) -> AsyncIterator[T]:
        """A stream of which a piece has come is not begun again."""
        attempts = self._setup.attempts(call.part)
        while True:
            begun = False
            try:
                async with aclosing(self._transport.stream(call, timeout)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except MsxError as error:
                pause = None if begun else attempts.pause(error)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
