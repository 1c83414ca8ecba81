"""Headers of TGI's responses that say where the time of a generation went, and MSX's own."""

import time

from msx_frontend.generation.generation import Generation
from msx_frontend.generation.text_request import Headers
from msx_frontend.models.versions.model_version import ModelVersion


class Timings:
    """A clock that starts when a request has been read."""

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._began = self._validated = time.monotonic()

    def validated(self) -> None:
        self._validated = time.monotonic()

    def headers(self, generation: Generation) -> Headers:
        """The headers. Times are in milliseconds, but for x-compute-time, which is in seconds."""
        total = time.monotonic() - self._began
        inference = total - (self._validated - self._began) - generation.queue_seconds
        tokens = generation.usage.completion
        return [
            ("x-compute-time", f"{total:.6f}"),
            ("x-compute-characters", str(self._characters)),
            ("x-total-time", _millis(total)),
            ("x-validation-time", _millis(self._validated - self._began)),
            ("x-queue-time", _millis(generation.queue_seconds)),
            ("x-inference-time", _millis(inference)),
            ("x-time-per-token", _millis(inference / max(tokens, 1))),
            ("x-prompt-tokens", str(generation.usage.prompt)),
            ("x-generated-tokens", str(tokens)),
        ]


def compute_type(version: ModelVersion) -> tuple[str, str]:
    return "x-compute-type", version.workers.device_type


def _millis(seconds: float) -> str:
    return f"{max(seconds, 0) * 1000:.3f}"
