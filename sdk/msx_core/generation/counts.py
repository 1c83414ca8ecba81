"""How many texts a request asks for."""

from msx_core.errors import InvalidInput
from msx_core.generation.text import GenerateRequest


def texts_asked(request: GenerateRequest) -> int:
    """The number of texts to be generated. Raises InvalidInput."""
    params = request.params
    best_of = params.n if params.best_of is None else params.best_of
    if best_of < params.n:
        raise InvalidInput(f"best_of: {best_of} is less than n, {params.n}")
    if best_of > params.n and request.stream:
        raise InvalidInput(f"best_of: the best {params.n} of {best_of} texts cannot be streamed; set stream to false")
    if params.max_tokens is not None and params.min_tokens > params.max_tokens:
        raise InvalidInput(f"min_tokens: {params.min_tokens} is more than max_tokens, {params.max_tokens}")
    return best_of
