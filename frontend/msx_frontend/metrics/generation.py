"""Metrics of language models: tokens, and the time between them."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry

from msx_core.generation import GenerateDelta
from msx_frontend.metrics.numbers import CounterFamily, HistogramFamily

MODEL = ("model", "version")
FIRST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10, 20, 40, 80)
BETWEEN = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.035, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5)
WHOLE = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 240, 480)
COUNTS = (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)


class TextFamilies:
    """The families, made once for a server."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> HistogramFamily:
            return HistogramFamily(name, text, MODEL, buckets, registry)

        def counter(name: str, text: str) -> CounterFamily:
            return CounterFamily(name, text, MODEL, registry)

        self.first = histogram("msx_llm_first_token_seconds", "Arrival to first token of a streamed text", FIRST)
        self.between = histogram("msx_llm_inter_token_seconds", "Token to token of a streamed text", BETWEEN)
        self.whole = histogram("msx_llm_request_seconds", "Arrival to end of a generation", WHOLE)
        self.tokens = histogram("msx_llm_generated_tokens", "Tokens generated per request", COUNTS)
        self.prompt = counter("msx_llm_prompt_tokens", "Tokens of prompts")
        self.completion = counter("msx_llm_completion_tokens", "Tokens generated")
        self.cached = counter("msx_llm_cached_tokens", "Tokens of prompts that were computed before")
        self.routed = CounterFamily(
            "msx_llm_routed_requests", "Requests for which a worker was chosen", (*MODEL, "by"), registry
        )


class TextMetrics:
    """The children of one model version."""

    def __init__(self, families: TextFamilies, name: str, version: str) -> None:
        self.first = families.first.labels(name, version)
        self.between = families.between.labels(name, version)
        self.whole = families.whole.labels(name, version)
        self.tokens = families.tokens.labels(name, version)
        self.prompt = families.prompt.labels(name, version)
        self.completion = families.completion.labels(name, version)
        self.cached = families.cached.labels(name, version)
        self._routed, self._labels = families.routed, (name, version)

    def routed(self, by: str) -> None:
        """A worker was chosen by the request's session, its prefix, or load."""
        self._routed.labels(*self._labels, by).inc()

    def meter(self, *, stream: bool) -> Meter:
        return Meter(self, stream)


class Meter:
    """Measures one generation. Without a stream all tokens come at the end, so that the time between them is
    unknown."""

    def __init__(self, metrics: TextMetrics, stream: bool) -> None:
        self._metrics = metrics
        self._stream = stream
        self._began = time.monotonic()
        self._between = metrics.between.observe
        self._last: dict[int, float] = {}

    def came(self, delta: GenerateDelta, at: float) -> None:
        """`at` is a `time.monotonic()` instant."""
        if self._stream and delta.tokens:
            self._tokens(delta, at)
        if delta.usage is not None:
            self._metrics.prompt.inc(delta.usage.prompt)
            self._metrics.cached.inc(delta.usage.cached)
            self._metrics.completion.inc(delta.usage.completion)
            self._metrics.tokens.observe(delta.usage.completion)

    def came_alone(self, at: float) -> None:
        """One token of the only text of a stream, behind its first."""
        last = self._last
        self._between(at - last[0])
        last[0] = at

    def ended(self) -> None:
        self._metrics.whole.observe(time.monotonic() - self._began)

    def _tokens(self, delta: GenerateDelta, at: float) -> None:
        last, count = self._last.get(delta.index), len(delta.tokens)
        if last is not None:
            for _ in range(count):
                self._between((at - last) / count)
        elif not self._last:
            self._metrics.first.observe(at - self._began)
        self._last[delta.index] = at
