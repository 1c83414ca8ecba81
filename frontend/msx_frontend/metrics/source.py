"""Whose samples they are: a model version, and what it said of its metrics."""

from __future__ import annotations

from msx_protocol import MetricInfo

MOST_FORMS = 1000
"""As many as a worker tells; its successors may make up others."""


class SampleSource:
    """By identity: a version that is registered again is another one."""

    def __init__(self, model: str, version: str) -> None:
        self.model = model
        self.version = version
        self.forms: dict[str, MetricInfo] = {}
        self.closed = False
        """What still comes is not taken any more."""

    def learn(self, forms: list[MetricInfo]) -> None:
        for form in forms:
            if form.name in self.forms or len(self.forms) < MOST_FORMS:
                self.forms[form.name] = form


Owner = SampleSource | tuple[SampleSource, int]
"""The version, or one worker of it."""


def worker_name(number: int, model: str, version: str) -> str:
    """As TorchServe names it."""
    return f"W-{number}-{model}_{version}"
