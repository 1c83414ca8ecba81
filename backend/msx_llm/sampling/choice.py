"""The parameters with which a device chooses a token."""

import msgspec

TOKEN_MADE = 2
"""Added to a token's count on the device each time that it is made; one that only stands in the prompt counts 1."""


class TokenChoice(msgspec.Struct, frozen=True, array_like=True):
    """The likeliest token at temperature 0, else one drawn as `SamplingParams` say; `uniform`, the text's own random
    number, is in [0, 1). `top_k` 0: all."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    uniform: float = 0.0
    frequency: float = 0.0
    presence: float = 0.0
    repetition: float = 1.0

    @property
    def penalizes(self) -> bool:
        """It depends on the tokens that the text has: the device counts the chosen one, too."""
        return bool(self.frequency or self.presence or self.repetition != 1)
