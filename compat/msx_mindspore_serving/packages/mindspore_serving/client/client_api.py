"""The client of a language model over HTTP: llm-serving's `MindsporeInferenceClient`."""

from collections.abc import Iterator, Mapping

import httpx
import msgspec

from .client_utils import ClientRequest, Parameters, Response, StreamResponse

_TIMEOUT = 30000
_LINE = "data:"


class UnknownError(RuntimeError):
    """The server's refusal, in its words."""


class BaseClient:
    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        cookies: Mapping[str, str] | None = None,
        timeout: float = _TIMEOUT,
    ) -> None:
        """`base_url` is that of the model; `timeout` is in seconds."""
        self.base_url, self.headers, self.cookies, self.timeout = base_url, headers, cookies, timeout

    def generate(
        self,
        prompt: str,
        do_sample: bool = False,
        repetition_penalty: float | None = 1.0,
        temperature: float | None = 1.0,
        top_k: int | None = 1,
        top_p: float | None = 1,
        max_new_tokens: int | None = 300,
    ) -> Response:
        """The whole text. Raises UnknownError for a refusal, httpx.HTTPError where the server cannot be asked."""
        parameters = Parameters(
            do_sample=do_sample,
            repetition_penalty=repetition_penalty,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            max_new_tokens=max_new_tokens,
        )
        body = ClientRequest(inputs=prompt, parameters=parameters).dict()
        with self._client() as client:
            reply = client.post(self.base_url, json=body)
        _check(reply)
        return msgspec.json.decode(reply.content, type=Response)

    def generate_stream(
        self,
        prompt: str,
        do_sample: bool = True,
        repetition_penalty: float | None = 1.0,
        temperature: float | None = 1.0,
        top_k: int | None = 1,
        top_p: float | None = 1,
        max_new_tokens: int | None = 300,
        return_full_text: bool = True,
    ) -> Iterator[StreamResponse]:
        """The tokens, each with a `token`, then the whole text unless `return_full_text` is false. Raises as `generate`
        does."""
        parameters = Parameters(
            do_sample=do_sample,
            repetition_penalty=repetition_penalty,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            max_new_tokens=max_new_tokens,
            return_full_text=return_full_text,
        )
        body = ClientRequest(inputs=prompt, stream=True, parameters=parameters).dict()
        with self._client() as client, client.stream("POST", self.base_url, json=body) as reply:
            if reply.status_code != httpx.codes.OK:
                reply.read()
                _check(reply)
            for line in reply.iter_lines():
                if line.startswith(_LINE):
                    yield _event(line[len(_LINE) :])

    def _client(self) -> httpx.Client:
        return httpx.Client(headers=self.headers, cookies=dict(self.cookies or {}), timeout=self.timeout)


class MindsporeInferenceClient(BaseClient):
    """`model_type` is the model's name or an alias of it; `token` is the inference key, where the server asks for
    one."""

    def __init__(self, model_type: str, server_url: str, token: str | None = None, timeout: float = _TIMEOUT) -> None:
        headers = {"user-agent": "mindspoer_serving/1.0"}  # as there; the server writes lines of `data:` for it
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        super().__init__(f"{server_url}/models/{model_type}", headers=headers, timeout=timeout)


def _event(line: str) -> StreamResponse:
    """Each token's event has its text twice, that of the whole text once."""
    event = msgspec.json.decode(line, type=StreamResponse)
    return event if event.token is None else StreamResponse(token=event.token)


def _check(reply: httpx.Response) -> None:
    if reply.status_code == httpx.codes.OK:
        return
    try:
        raise UnknownError(str(msgspec.json.decode(reply.content)["error"]))
    except (msgspec.DecodeError, KeyError, TypeError):
        raise UnknownError(f"the server answered {reply.status_code}: {reply.text[:200]}") from None
