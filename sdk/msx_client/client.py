"""The client, for code that waits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from msx_client.address import Part
from msx_client.call import HttpCall
from msx_client.errors import MsxError
from msx_client.jobs import Jobs
from msx_client.models import Models
from msx_client.patience import Patience
from msx_client.sequence import RequestSequence
from msx_client.setup import Setup
from msx_client.texts import ChatReply, Completion, Ranked, TextPiece

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np

T = TypeVar("T")


class Client:
    """Calls one server. Thread-safe; connections are kept and shared. Every method raises `MsxError`."""

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
        self.models = Models(self._run, self._calls)
        self.jobs, self.all_jobs = self._jobs("inference"), self._jobs("management")
        """Jobs of the key; those of all keys, for who has the management key."""

    def _jobs(self, part: Part) -> Jobs:
        return Jobs(self._run, self._stream, self._setup.job_maker(part))

    # -- predictions --

    def predict(
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
        return self._run(self._calls.predict(model, data, version, method, headers or {}), timeout)

    def stream(
        self,
        model: str,
        data: Any = b"",
        *,
        version: str | None = None,
        method: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Iterator[bytes]:
        """The pieces of an answer as they are made. Closing the iterator cancels the request."""
        return self._stream(self._calls.stream(model, data, version, method, headers or {}), timeout)

    def infer(
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
        return self._run(call, timeout)

    def sequence(self, model: str, *, version: str | None = None) -> RequestSequence:
        """Requests to a stateful model that belong together."""
        return RequestSequence(self._run, self._calls, model, version)

    # -- texts --

    def generate(self, model: str, prompt: str, *, timeout: float | None = None, **options: Any) -> Completion:
        """A text that goes on from the prompt. Options are OpenAI's: `max_tokens`, `temperature`, `stop`, …"""
        return self._run(self._calls.generate(model, prompt, options), timeout)

    def generate_stream(
        self, model: str, prompt: str, *, timeout: float | None = None, **options: Any
    ) -> Iterator[TextPiece]:
        return self._stream(self._calls.generate_stream(model, prompt, options), timeout)

    def chat(
        self, model: str, messages: Sequence[Mapping[str, Any]], *, timeout: float | None = None, **options: Any
    ) -> ChatReply:
        """The next message. `messages` and options are OpenAI's: `tools`, `response_format`, …"""
        return self._run(self._calls.chat(model, messages, options), timeout)

    def chat_stream(
        self, model: str, messages: Sequence[Mapping[str, Any]], *, timeout: float | None = None, **options: Any
    ) -> Iterator[TextPiece]:
        return self._stream(self._calls.chat_stream(model, messages, options), timeout)

    def embed(
        self, model: str, texts: str | Sequence[str], *, timeout: float | None = None, **options: Any
    ) -> list[list[float]]:
        """A vector for each text."""
        rows = [texts] if isinstance(texts, str) else list(texts)
        if not self._setup.address.grpc:
            return self._run(self._calls.embed(model, rows, options), timeout)
        return [self._run(self._calls.embed(model, [text], options), timeout)[0] for text in rows]

    def rerank(
        self, model: str, query: str, documents: Sequence[str], *, timeout: float | None = None, **options: Any
    ) -> list[Ranked]:
        """The documents by how well they fit the query, the best first (`/v1/rerank`, in Cohere's and Jina's shape)."""
        return self._run(self._calls.rerank(model, query, documents, options), timeout)

    # -- health and metadata --

    def is_ready(self, model: str | None = None) -> bool:
        """Whether the server (or the model) takes requests now. Raises MsxError where nobody answers."""
        try:
            self._once(self._calls.ready(model), None)
        except MsxError as error:
            if error.status == 503:
                return False
            raise
        return True

    def wait_ready(self, model: str | None = None, *, timeout: float = 120.0) -> None:
        """Until the server (or the model) takes requests; a server that does not answer yet is waited for, too."""
        patience = Patience(timeout)
        while True:
            try:
                self._once(self._calls.ready(model), None)
                return
            except MsxError as error:
                pause = patience.pause(error)
            time.sleep(pause)

    def metadata(self, model: str, *, version: str | None = None) -> dict[str, Any]:
        """Versions, platform, inputs and outputs (KServe v2)."""
        found: dict[str, Any] = self._run(self._calls.metadata(model, version), None)
        return found

    # -- its life --

    def close(self) -> None:
        if "_transport" in self.__dict__:
            self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @cached_property
    def _transport(self) -> Any:
        """Made by the first call, because it imports a library."""
        return self._setup.transport()

    def _run(self, call: HttpCall[T], timeout: float | None = None) -> T:
        attempts = self._setup.attempts(call.part)
        while True:
            try:
                return self._once(call, timeout)
            except MsxError as error:
                pause = attempts.pause(error)
                if pause is None:
                    raise
            time.sleep(pause)

    def _once(self, call: HttpCall[T], timeout: float | None) -> T:
        result: T = self._transport.run(call, timeout)
        return result

    def _stream(self, call: HttpCall[T], timeout: float | None) -> Iterator[T]:
        """A stream of which a piece has come is not begun again."""
        attempts = self._setup.attempts(call.part)
        while True:
            begun = False
            try:
                with closing(self._transport.stream(call, timeout)) as pieces:
                    for piece in pieces:
                        begun = True
                        yield piece
                return
            except MsxError as error:
                pause = None if begun else attempts.pause(error)
                if pause is None:
                    raise
            time.sleep(pause)
