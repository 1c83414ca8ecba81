"""The source of samples: a model version, and the metrics that it has announced."""

from msx_protocol import MetricInfo

MOST_FORMS = 1000
"""As many as a worker announces; later workers may announce others."""


class SampleSource:
    """Compared by identity: a version that is registered again is another source."""

    def __init__(self, model: str, version: str) -> None:
        self.model = model
        self.version = version
        self.forms: dict[str, MetricInfo] = {}
        self.closed = False
        """Further samples are dropped."""

    def learn(self, forms: list[MetricInfo]) -> None:
        for form in forms:
            if form.name in self.forms or len(self.forms) < MOST_FORMS:
                self.forms[form.name] = form


Owner = SampleSource | tuple[SampleSource, int]
"""The version, or one worker of it."""


def worker_name(number: int, model: str, version: str) -> str:
    """TorchServe's name of a worker."""
    return f"W-{number}-{model}_{version}"
