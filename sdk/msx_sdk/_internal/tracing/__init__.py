"""Spans of OpenTelemetry, as the server and its workers make them. The SDK of OpenTelemetry is imported only where they
are exported."""
