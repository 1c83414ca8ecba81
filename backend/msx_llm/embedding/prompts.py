"""The texts that a model was trained to find before its inputs, as sentence-transformers has them."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from msx_llm.text.files import read_object
from msx_sdk.errors import HandlerLoadError, InvalidInput

FILE = "config_sentence_transformers.json"


class InputPrompts(NamedTuple):
    """`default` is the name of the prompt of a request that names none."""

    texts: Mapping[str, str] = {}
    default: str | None = None

    def before(self, name: str | None) -> str:
        """Raises InvalidInput."""
        wanted = self.default if name is None else name
        if wanted is None:
            return ""
        if wanted not in self.texts:
            has = f"it has {', '.join(sorted(self.texts))}" if self.texts else "it has none"
            raise InvalidInput(f"prompt_name: the model has no prompt {wanted!r}; {has}")
        return self.texts[wanted]


NO_PROMPTS = InputPrompts()


def read_prompts(root: Path, *, pooled: bool) -> InputPrompts:
    """`pooled`: the prompt's states count for the vector, as those of the text do; of a model where they do not, no
    prompt is served. Raises HandlerLoadError."""
    raw = read_object(root, FILE)
    texts, default = raw.get("prompts") or {}, raw.get("default_prompt_name")
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise HandlerLoadError(f"{FILE}, prompts: expected an object of texts")
    if default is not None and (default not in texts or not pooled):
        why = "the pooling leaves it out, which is not served" if default in texts else "prompts has none of that name"
        raise HandlerLoadError(f"{FILE}, default_prompt_name: {default}: {why}")
    return InputPrompts(texts if pooled else {}, default)
