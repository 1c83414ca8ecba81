"""Types of the keys of `config.json`: nothing of a file becomes memory or time without a bound."""

from typing import Annotated

from msgspec import Meta

MOST = 1 << 24
"""The largest vocabularies have a million tokens, the widest layers some hundred thousand numbers."""
Size = Annotated[int, Meta(ge=1, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
Layers = Annotated[int, Meta(ge=1, le=10_000)]
"""Each has a place in lists of this process; the deepest models have some hundred."""
Positions = Annotated[int, Meta(ge=2, le=(1 << 31) - 1)]
"""Length of a context; its logarithm is a divisor."""
Factor = Annotated[float, Meta(ge=1e-6, le=1e6)]
Weight = Annotated[float, Meta(ge=0, le=1e6)]
Epsilon = Annotated[float, Meta(gt=0, le=1)]
Share = Annotated[float, Meta(gt=0, le=1)]
Theta = Annotated[float, Meta(gt=1, le=1e18)]
"""The base of the angles; its logarithm is a divisor."""
