"""Chat templates that ask for calls in a format that no reader has."""

import logging
import re

from msx_core.tool_calls import DEFAULT, FORMATS, marked_format

_TOOLS = re.compile(r"\btools\b")
_OBJECT = re.compile(r'\\?"name\\?"\s*:.{0,400}\\?"(arguments|parameters)\\?"', re.DOTALL)
"""An object that `hermes` reads without a mark, as Llama 3 writes it."""
_ARGUMENTS_ALONE = re.compile(r"arguments\W{0,4}\|\s*tojson")
"""Arguments without their call: such a template has them behind a name between the marks of `hermes`."""

log = logging.getLogger("msx.llm")


def warn_of_unread_calls(model: str, template: str, parser: str | None) -> None:
    """Log a warning where nobody reads the model's calls. `parser`: that of model-config.yaml."""
    if parser or not _TOOLS.search(template) or _OBJECT.search(template):
        return
    marked = marked_format(template)
    if marked is not None and not (marked == DEFAULT.NAME and _ARGUMENTS_ALONE.search(template)):
        return
    log.warning(
        "%s: the chat template takes tools, and nobody here reads the calls that it asks for: they come as content. "
        "Give the format as toolParser: one of %s; with --handler vllm also vllm:NAME, a parser of vLLM's",
        model, ", ".join(FORMATS),
    )  # fmt: skip
