"""llm-serving's request, with its defaults and its clamping of what is out of range.

Behaviour: `client_utils.py` and `server_app_post.py` of github.com/mindspore-ai/llm-serving.
"""

import sys
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from msx_core.generation import GenerateRequest, SamplingParams
from msx_core.generation.wire import Integer, Positive
from msx_frontend.generation.text_request import TextRequest

MOST_TOP_K = 100
"""Tokens that its post-sampling graph leaves."""
DEFAULT_TOP_K, DEFAULT_NEW_TOKENS = 3, 300
LEAST_TOP_P, LEAST_TEMPERATURE, HOTTEST = 0.01, 1e-5, 65536
WARMEST = 100.0
"""Largest temperature of `SamplingParams`."""
OWN_CLIENT = "mindspoer_serving/"
"""How the User-Agent of its Python client begins, which reads lines that begin with `data:` alone."""
UNUSED = (
    "decoder_input_details",
    "details",
    "seed",
    "stop",
    "top_n_tokens",
    "truncate",
    "typical_p",
    "watermark",
)
"""Members that its server takes and does not use."""
_LARGEST = sys.float_info.max
"""A number of JSON is not larger, but texts stand for numbers here, "nan" and "inf" too."""
_NOTHING: tuple[Any, ...] = (None, False, 0, "", [], "0", "False", "false")


class ServingParameters(msgspec.Struct, kw_only=True):
    do_sample: bool | None = True
    repetition_penalty: Annotated[float, Meta(gt=0, le=_LARGEST)] | None = None
    temperature: float | None = None
    top_k: Integer | None = None
    top_p: Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)] | None = None
    max_new_tokens: Positive | None = None
    return_full_text: bool | None = True
    return_protocol: str | None = "sse"
    decoder_input_details: Any = None
    details: Any = None
    seed: Any = None
    stop: Any = None
    top_n_tokens: Any = None
    truncate: Any = None
    typical_p: Any = None
    watermark: Any = None


class ServingRequest(msgspec.Struct, kw_only=True):
    """Texts may stand for numbers and booleans: its clients send `"do_sample": "False"`."""

    inputs: str
    parameters: ServingParameters | None = None
    stream: bool = False

    @property
    def asked(self) -> ServingParameters:
        return self.parameters or ServingParameters()


class ServingInstances(ServingRequest, kw_only=True):
    """The body at MindSpore Serving's path, where the prompt has the name that all its bodies have."""

    inputs: str = msgspec.field(name="instances")


def read(request: TextRequest) -> ServingRequest:
    """Raises MalformedJson, WrongParameter."""
    return _told(request, request.read(ServingRequest, strict=False))


def read_instances(request: TextRequest) -> ServingRequest:
    """The same at MindSpore Serving's path."""
    return _told(request, request.read(ServingInstances, strict=False))


def _told(request: TextRequest, asked: ServingRequest) -> ServingRequest:
    """The request, whose reply tells members without effect."""
    request.ignored = [f"parameters.{name}" for name in UNUSED if getattr(asked.asked, name) not in _NOTHING]
    return asked


def as_lines(request: TextRequest, asked: ServingParameters) -> bool:
    """Whether the events of a stream are lines that begin with `data:`, not bare ones."""
    return asked.return_protocol not in (None, "sse") or request.header("user-agent").startswith(OWN_CLIENT)


def generate_request(asked: ServingRequest, *, stream: bool) -> GenerateRequest:
    return GenerateRequest(prompt=asked.inputs, params=_sampling(asked.asked), stream=stream)


def _sampling(asked: ServingParameters) -> SamplingParams:
    """Greedy where sampling is not asked for, or the temperature is out of range. A text ends where the model's
    longest one does, whatever was asked for: its Python client always asks for 300 tokens."""
    temperature = 1.0 if asked.temperature is None else asked.temperature
    sampled = bool(asked.do_sample) and LEAST_TEMPERATURE < temperature <= HOTTEST
    return SamplingParams(
        temperature=min(temperature, WARMEST) if sampled else 0.0,
        top_k=_top_k(DEFAULT_TOP_K if asked.top_k is None else asked.top_k),
        top_p=1.0 if asked.top_p is None else min(max(asked.top_p, LEAST_TOP_P), 1.0),
        repetition_penalty=1.0 if asked.repetition_penalty is None else asked.repetition_penalty,
        max_tokens=asked.max_new_tokens or DEFAULT_NEW_TOKENS,
        fit_context=True,
        logprobs=0,
    )


def _top_k(asked: int) -> int:
    return min(asked, MOST_TOP_K) if asked > 0 else 1
