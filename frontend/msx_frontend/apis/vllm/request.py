"""Requests of vLLM's routes for models that pool. Shapes: https://docs.vllm.ai/en/latest/models/pooling_models.html"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from msx_core.generation import Capabilities
from msx_core.generation.classify import Scale
from msx_core.generation.wire import Positive
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.inputs import Inputs
from msx_frontend.generation.truncation import Truncation, most_tokens
from msx_frontend.models.versions.model_version import ModelVersion

NAMES = {"truncate": "truncate_prompt_tokens"}


class Pooled(msgspec.Struct, kw_only=True):
    """Members of all these requests. `use_activation`: None for what the model's files say."""

    model: str | None = None
    truncate_prompt_tokens: Truncation | None = None
    truncation_side: Literal["left", "right"] | None = None
    use_activation: bool | None = None

    @property
    def scale(self) -> Scale:
        if self.use_activation is None:
            return "files"
        return "probability" if self.use_activation else "logit"

    @property
    def truncate_left(self) -> bool:
        return self.truncation_side == "left"

    def most_tokens(self, version: ModelVersion) -> int | None:
        """Tokens to which a text is cut; None for one that is refused where it is too long. Raises WrongParameter."""
        return most_tokens(self.truncate_prompt_tokens, version.schema.capabilities or Capabilities())


class ClassificationRequest(Pooled, kw_only=True):
    input: Inputs | None = None
    messages: Any = None

    @property
    def given(self) -> Inputs:
        """Raises WrongParameter for messages, and without an input."""
        if self.messages is not None:
            raise WrongParameter("messages", "not served for models that pool: send the text as input")
        if self.input is None:
            raise WrongParameter("input", "needed, and missing")
        return self.input


class PoolingRequest(ClassificationRequest, kw_only=True):
    task: Literal["embed", "classify", "token_embed", "token_classify", "plugin"] | None = None
    encoding_format: Literal["float", "base64", "bytes", "bytes_only"] | None = None
    dimensions: Positive | None = None


class ScoreRequest(Pooled, kw_only=True):
    """Two lists of texts by one of four pairs of names."""

    text_1: str | list[str] | None = None
    text_2: str | list[str] | None = None
    queries: str | list[str] | None = None
    documents: str | list[str] | None = None
    items: str | list[str] | None = None
    data_1: str | list[str] | None = None
    data_2: str | list[str] | None = None
    max_tokens_per_query: int = 0
    max_tokens_per_doc: int = 0
    instruction: Any = None
    chat_template_kwargs: Any = None
