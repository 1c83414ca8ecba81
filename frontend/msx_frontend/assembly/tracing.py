"""Starts and ends the export of spans."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msx_frontend.config import ServerConfig
from msx_frontend.start_errors import StartError
from msx_frontend.tracing.request_spans import RequestSpans
from msx_frontend.tracing.settings import TracingSettings, tracing_settings

if TYPE_CHECKING:
    from msx_sdk._internal.tracing.export import SpanExport

log = logging.getLogger("msx.tracing")

SERVICE = "msx-serve"
END_LIMIT = 3.0
"""Seconds that the end of the server waits for the last spans."""
MISSING = "the package opentelemetry is not installed, which sends spans: pip install 'msx-serve[otel]'"


class Tracing:
    def __init__(self, export: SpanExport, settings: TracingSettings) -> None:
        self.export, self.settings = export, settings
        self.spans = RequestSpans(export, settings.ratio)

    def counts(self) -> dict[str, int]:
        """Spans by what became of them."""
        export = self.export
        return {"exported": export.exported, "failed": export.failed, "dropped": export.dropped}

    async def close(self) -> None:
        await asyncio.to_thread(self.export.close, END_LIMIT)


def start_tracing(config: ServerConfig, env: Mapping[str, str]) -> Tracing | None:
    """None where requests are not traced. Raises StartError for an endpoint of the configuration that cannot be used;
    without the package a variable that is meant for all programs of a machine is only warned of."""
    settings = tracing_settings(config, env)
    if settings is None:
        return None
    try:
        from msx_sdk._internal.tracing.export import SpanExport

        return Tracing(SpanExport(settings.endpoint, SERVICE), settings)
    except ImportError:
        if settings.endpoint:
            raise StartError(f"otlp_endpoint is set, but {MISSING}.") from None
        log.warning("The environment asks for traces, but %s.", MISSING)
    except ValueError as error:
        raise StartError(f"Spans cannot be sent to {settings.endpoint or 'the endpoint of OTEL_*'}: {error}.") from None
    return None
