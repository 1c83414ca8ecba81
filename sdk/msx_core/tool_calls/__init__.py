"""The formats in which models write calls of tools. To add one: a module like those here, and its name in FORMATS.

A module has NAME, TEMPLATE_MARKS (what a chat template contains whose model writes this format), NEEDS_SPECIAL_TOKENS
(whether the text must keep special tokens for it), and `reader(schemas, parallel=…)`.
"""

from typing import Protocol

from msx_core.tool_calls import (
    deepseek_v3,
    deepseek_v32,
    gemma4,
    glm4,
    glm45,
    gpt_oss,
    granite,
    hermes,
    internlm,
    kimi_k2,
    minimax_m2,
    mistral,
    phi4_mini,
    pythonic,
    qwen3_coder,
    seed_oss,
)
from msx_core.tool_calls.parts import Schemas, ToolCallReader


class ToolCallFormat(Protocol):
    NAME: str
    TEMPLATE_MARKS: tuple[str, ...]
    NEEDS_SPECIAL_TOKENS: bool

    def reader(self, schemas: Schemas, *, parallel: bool) -> ToolCallReader: ...


DEFAULT: ToolCallFormat = hermes
FORMATS: dict[str, ToolCallFormat] = {
    it.NAME: it
    for it in (
        seed_oss,
        qwen3_coder,
        glm45,
        minimax_m2,
        deepseek_v32,
        deepseek_v3,
        gemma4,
        kimi_k2,
        internlm,
        mistral,
        pythonic,
        glm4,
        phi4_mini,
        granite,
        gpt_oss,
        hermes,
    )
}
"""Formats by name; a template with marks of several formats belongs to the first of them."""

WHOLE = frozenset({gpt_oss.NAME})
"""Formats of all that a model writes, its reasoning and its answer too: they are read without tools as well."""


def format_of_template(template: str) -> str:
    """The name of the format that a chat template asks for."""
    return marked_format(template) or DEFAULT.NAME


def marked_format(template: str) -> str | None:
    """The same; None where the template has no mark of a format."""
    found = (it.NAME for it in FORMATS.values() if any(mark in template for mark in it.TEMPLATE_MARKS))
    return next(found, None)
