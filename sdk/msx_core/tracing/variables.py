"""Variables of the environment that the server and its workers read."""

TRACING = "MSX_TRACING"
"""Our own: the server that started this worker traces where it is 1."""
ENDPOINT, OF_TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
"""OpenTelemetry's: of a collector for everything, and for traces alone."""
