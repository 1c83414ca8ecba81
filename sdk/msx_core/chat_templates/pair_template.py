"""The prompt of a pair of texts, by a chat template that knows the roles `query` and `document`."""

from pathlib import Path
from typing import Any, NamedTuple

from msx_core.chat_templates.chat import DEFAULT, ChatTemplate
from msx_core.errors import HandlerLoadError, InvalidInput
from msx_core.tokenizer_files import special_tokens, tokenizer_config

QUERY, DOCUMENT = "query of the probe", "document of the probe"
KEY = "model-config.yaml, classification.template"


class PairText(NamedTuple):
    """`kept` characters at the end stand behind both texts: they are not cut."""

    text: str
    kept: int


class PairTemplate:
    """`prompt` is the system's message, if there is one. Raises ValueError for a template in which a pair has no
    place."""

    def __init__(self, template: ChatTemplate, prompt: str = "") -> None:
        self._template, self._before = template, [{"role": "system", "content": prompt}] if prompt else []
        written = self._written(QUERY, DOCUMENT)
        first, last = written.find(QUERY), written.rfind(DOCUMENT)
        if first < 0 or last < first:
            raise ValueError("it writes no document behind a query")
        self._kept = len(written) - last - len(DOCUMENT)

    def text(self, query: str, document: str) -> PairText:
        """Raises InvalidInput."""
        return PairText(self._written(query, document), self._kept)

    def _written(self, query: str, document: str) -> str:
        pair: list[dict[str, Any]] = [{"role": "query", "content": query}, {"role": "document", "content": document}]
        return self._template.render([*self._before, *pair])


def read_template(folder: Path, own: str | None, prompt: str) -> PairTemplate | None:
    """`own` is that of the yaml; without it the folder's chat template, if a pair has a place in it. Raises
    HandlerLoadError for an `own` one that has none."""
    if own is None:
        template = ChatTemplate.from_folder(folder)
        return None if template is None else _of_folder(template, prompt)
    try:
        return PairTemplate(ChatTemplate({DEFAULT: own}, special_tokens(tokenizer_config(folder))), prompt)
    except (InvalidInput, ValueError) as error:
        raise HandlerLoadError(f"{KEY}: of messages with the roles query and document {error}") from None


def _of_folder(template: ChatTemplate, prompt: str) -> PairTemplate | None:
    try:
        return PairTemplate(template, prompt)
    except (InvalidInput, ValueError):
        return None
