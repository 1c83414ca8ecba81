"""Requests of Ollama's API. Shapes: https://docs.ollama.com/api"""

from typing import Any

import msgspec

from msx_core.generation.wire import Positive, Tokens
from msx_frontend.generation.directory import LATEST


def plain_name(name: str) -> str:
    """The name without LATEST, which every one has here: there is one build of each model."""
    return name.removesuffix(LATEST)


class Asked(msgspec.Struct, kw_only=True):
    """Members that all requests for an answer of a model have. `keep_alive` has no effect: the operator says which
    models are loaded."""

    model: str
    options: dict[str, Any] | None = None
    keep_alive: Any = None


class AskedText(Asked, kw_only=True):
    stream: bool = True
    format: dict[str, Any] | str | None = None
    think: bool | str | None = None

    @property
    def thinks(self) -> bool | None:
        """None: as the model does by itself."""
        return None if self.think is None else self.think not in (False, "none")


class OllamaChat(AskedText, kw_only=True):
    messages: list[dict[str, Any]] = []
    tools: list[dict[str, Any]] | None = None


class OllamaGenerate(AskedText, kw_only=True):
    prompt: str = ""
    system: str | None = None
    raw: bool = False
    images: list[str] = []
    context: Tokens | None = None
    suffix: Any = None
    template: Any = None


class OllamaEmbed(Asked, kw_only=True):
    input: str | list[str]
    truncate: bool = True
    dimensions: Positive | None = None


class OllamaEmbedding(Asked, kw_only=True):
    """The older route, for one text."""

    prompt: str


class ShowModel(msgspec.Struct, kw_only=True):
    model: str = ""
    name: str = ""
    """An older name of `model`."""
