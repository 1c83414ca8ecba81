"""Requests and replies of text generation: the boundary between the APIs and any handler.

The frontend, which has no tokenizer, makes a `GenerateRequest` of an OpenAI, TGI or KServe request, and shapes its
replies from `GenerateDelta`s. A handler that speaks these types gets all of those APIs; `TextGenerationHandler` in
`msx_sdk.text_generation` does the speaking. Parameters mean what they mean in Hugging Face transformers, vLLM and TGI.
"""

from msx_core.generation.adapters import AdapterFiles, LoadAdapterReply, LoadAdapterRequest
from msx_core.generation.classify import ClassifyReply, ClassifyRequest
from msx_core.generation.embed import EmbedReply, EmbedRequest
from msx_core.generation.operations import CLASSIFY, EMBED, GENERATE, LOAD_ADAPTER, SLEEP, TOKENIZE, Capabilities
from msx_core.generation.owner import Owner
from msx_core.generation.sampling import BeamSearch, Constraint, SamplingDefaults, SamplingParams
from msx_core.generation.sleep import SleepReply, SleepRequest
from msx_core.generation.text import (
    ContextLengthExceeded,
    FinishReason,
    GenerateDelta,
    GenerateRequest,
    Token,
    TopToken,
    Usage,
)
from msx_core.generation.tokenize import TextSpan, TokenizeReply, TokenizeRequest

__all__ = [
    "CLASSIFY",
    "EMBED",
    "GENERATE",
    "LOAD_ADAPTER",
    "SLEEP",
    "TOKENIZE",
    "AdapterFiles",
    "BeamSearch",
    "Capabilities",
    "ClassifyReply",
    "ClassifyRequest",
    "Constraint",
    "ContextLengthExceeded",
    "EmbedReply",
    "EmbedRequest",
    "FinishReason",
    "GenerateDelta",
    "GenerateRequest",
    "LoadAdapterReply",
    "LoadAdapterRequest",
    "Owner",
    "SamplingDefaults",
    "SamplingParams",
    "SleepReply",
    "SleepRequest",
    "TextSpan",
    "Token",
    "TokenizeReply",
    "TokenizeRequest",
    "TopToken",
    "Usage",
]
