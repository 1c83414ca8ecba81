"""Which parsers read a model's texts: those of the server, or vLLM's own."""

from typing import NamedTuple

from msx_core.config import ModelConfig
from msx_core.config.sections import VLLMS
from msx_core.tool_calls import WHOLE
from msx_sdk.errors import HandlerLoadError


class ParserNames(NamedTuple):
    """The names of vLLM's parsers; empty where the server's read the texts."""

    tools: str
    reasoning: str

    def __str__(self) -> str:
        pairs = (("toolParser", self.tools), ("reasoningParser", self.reasoning))
        return ", ".join(f"{key}: {VLLMS}{name}" for key, name in pairs if name)


def parser_names(config: ModelConfig) -> ParserNames:
    """Raises HandlerLoadError where the server cannot read what vLLM's parser leaves."""
    tools, reasoning = config.tool_parser or "", config.reasoning_parser or ""
    if _is_vllms(tools) and reasoning and not _is_vllms(reasoning):
        raise HandlerLoadError(
            f"reasoningParser: {reasoning}: the server reads reasoning before calls, and toolParser gives the calls to "
            f"vLLM: give {VLLMS}{reasoning}"
        )
    if _is_vllms(reasoning) and tools in WHOLE:
        raise HandlerLoadError(
            f"reasoningParser: {reasoning}: toolParser: {tools} reads reasoning, too: leave one of them out"
        )
    return ParserNames(_own(tools), _own(reasoning))


def _is_vllms(name: str) -> bool:
    return name.startswith(VLLMS)


def _own(name: str) -> str:
    return name.removeprefix(VLLMS) if _is_vllms(name) else ""
