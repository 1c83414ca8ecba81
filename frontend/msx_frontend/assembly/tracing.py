"""Starts and ends the export of spans."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msx_core.start_errors import StartError
from msx_frontend.config import ServerConfig
from msx_frontend.tracing.request_spans import RequestSpans
from msx_frontend.tracing.settings import TracingSettings, tracing_settings

if TYPE_CHECKING:
    from msx_core.tracing.export import SpanExport

SERVICE = "msx-serve"
END_LIMIT = 3.0
"""Seconds that the end of the server waits for the last spans."""


class Tracing:
    def __init__(self, export: SpanExport, settings: TracingSettings) -> None:
        self.export, self.settings = export, settings
        self.spans = RequestSpans(export, settings.ratio)

    def counts(self) -> dict[str, int]:
        """Spans by what became of them."""
        export = self.export
        return {"exported": export.exported, "failed": export.failed, "dropped": export.dropped}

    async def close(self) -> None:
        self.spans.flush()
        await asyncio.to_thread(self.export.close, END_LIMIT)


def start_tracing(config: ServerConfig, env: Mapping[str, str]) -> Tracing | None:
    """None where requests are not traced. Raises StartError for a collector that cannot be meant."""
    settings = tracing_settings(config, env)
    if settings is None:
        return None
    from msx_core.tracing.export import SpanExport  # only here: most servers do not trace

    with _errors_named(settings):
        return Tracing(SpanExport(settings.endpoint, SERVICE), settings)


def check_tracing(config: ServerConfig, env: Mapping[str, str]) -> str:
    """The collector's address, where nothing is sent; "" where requests are not traced. Raises as `start_tracing`."""
    settings = tracing_settings(config, env)
    if settings is None:
        return ""
    from msx_core.tracing.collector import Collector

    with _errors_named(settings):
        return Collector(settings.endpoint, env).shown


@contextmanager
def _errors_named(settings: TracingSettings) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:
        raise StartError(
            f"Spans cannot be sent to {'otlp_endpoint' if settings.endpoint else 'the endpoint of OTEL_*'}: {error}."
        ) from None
