"""The section `classification:` of model-config.yaml."""

from typing import Annotated

import msgspec
from msgspec import Meta

Answers = Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1, max_length=2)]


class ClassificationOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """It overrides the model's own files."""

    template: str | None = None
    """Makes the prompt of a pair, as a chat template does of messages of the roles `query` and `document`."""
    answers: Answers | None = None
    """Tokens of a model that answers with a word: the token that says that the texts fit, and the one that says that
    they do not, if that has a part in the score."""
