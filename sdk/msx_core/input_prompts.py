"""The texts that a model was trained to find before its inputs, as sentence-transformers has them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from msx_core.errors import HandlerLoadError, InvalidInput
from msx_core.tokenizer_files import read_object

FILE = "config_sentence_transformers.json"
MODULES = "modules.json"


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


def pools_prompts(root: Path) -> bool:
    """Whether the states of a prompt count for the vector, by the module `Pooling` of sentence-transformers."""
    try:
        modules = json.loads((root / MODULES).read_bytes())
        places = [root / str(one["path"]) for one in modules if str(one["type"]).endswith(".Pooling")]
    except FileNotFoundError:
        return True
    except (ValueError, KeyError, TypeError):
        raise HandlerLoadError(f"{MODULES} is not a list of modules with a type and a path each") from None
    return all(read_object(place, "config.json").get("include_prompt") is not False for place in places)
