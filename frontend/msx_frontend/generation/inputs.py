"""Lists of texts of one request: embeddings, pairs, documents."""

from collections.abc import Sized

from msx_core.generation.wire import Integer
from msx_frontend.generation.errors import WrongParameter

Inputs = str | list[str | Integer | list[Integer]]


def text_inputs(name: str, given: Inputs) -> list[str | tuple[int, ...]]:
    """A text, token ids, or a list of either. Raises WrongParameter with the parameter's name."""
    if isinstance(given, str):
        given = [given]
    if given and all(isinstance(item, int) for item in given):
        given = [given]  # type: ignore[list-item]  # which all() has proved
    if not given or not all(item != "" and item != [] for item in given):
        raise WrongParameter(name, "a text, token ids, or a list of them is needed, and none of them empty")
    if any(isinstance(item, int) for item in given):
        raise WrongParameter(name, "token ids and texts in one list")
    return [tuple(item) if isinstance(item, list) else str(item) for item in given]


def check_some(name: str, given: Sized) -> None:
    """Raises WrongParameter for none."""
    if not given:
        raise WrongParameter(name, "at least one is needed")
