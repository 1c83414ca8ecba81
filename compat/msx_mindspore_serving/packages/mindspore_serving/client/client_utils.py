"""Bodies of requests to a language model and of its replies, as llm-serving's client names them.

Defaults and members: `client_utils.py` of github.com/mindspore-ai/llm-serving.
"""

from typing import Any

import msgspec


class _JsonBody(msgspec.Struct, kw_only=True):
    def dict(self) -> dict[str, Any]:
        """The members as JSON has them."""
        members: dict[str, Any] = msgspec.to_builtins(self)
        return members


class Parameters(_JsonBody, kw_only=True):
    do_sample: bool = True
    repetition_penalty: float | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    max_new_tokens: int | None = None
    return_full_text: bool = True
    return_protocol: str = "sse"
    decoder_input_details: bool = False
    details: bool = False
    seed: int = 0
    stop: list[str] = []
    top_n_tokens: int = 0
    truncate: bool = False
    typical_p: int = 0
    watermark: bool = False


class ClientRequest(_JsonBody, kw_only=True):
    """`inputs` is the prompt; `stream` asks for the tokens as they come."""

    inputs: str
    parameters: Parameters | None = None
    stream: bool = False


class Response(_JsonBody, kw_only=True):
    generated_text: str


class Token(_JsonBody, kw_only=True):
    text: str


class StreamResponse(_JsonBody, kw_only=True):
    """A token, or the whole text behind the last one."""

    generated_text: str | None = None
    token: Token | None = None
