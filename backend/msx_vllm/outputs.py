"""Members of vLLM's outputs that are read here. Its own classes have them; tests make others."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Score(Protocol):
    """`rank`: place among all tokens, 1 is the likeliest."""

    @property
    def logprob(self) -> float: ...

    @property
    def rank(self) -> int | None: ...


Scores = Mapping[int, Score]
"""The scored tokens of one place, by id."""


class GrownText(Protocol):
    """The growth of one text; a whole text where no stream was asked for."""

    @property
    def index(self) -> int: ...

    @property
    def text(self) -> str: ...

    @property
    def token_ids(self) -> Sequence[int]: ...

    @property
    def finish_reason(self) -> str | None: ...


class TextOutput(GrownText, Protocol):
    """Growth with its scores, and the reason of its end."""

    @property
    def logprobs(self) -> Sequence[Scores] | None: ...

    @property
    def cumulative_logprob(self) -> float | None: ...

    @property
    def stop_reason(self) -> str | int | None: ...


class Times(Protocol):
    """Instants in seconds on one clock; 0 before it is known."""

    @property
    def queued_ts(self) -> float: ...

    @property
    def scheduled_ts(self) -> float: ...


class EngineOutput(Protocol):
    @property
    def metrics(self) -> Times | None: ...

    @property
    def prompt_token_ids(self) -> Sequence[int] | None: ...

    @property
    def prompt_logprobs(self) -> Sequence[Scores | None] | None: ...

    @property
    def outputs(self) -> Sequence[TextOutput]: ...

    @property
    def finished(self) -> bool: ...

    @property
    def num_cached_tokens(self) -> int | None: ...
