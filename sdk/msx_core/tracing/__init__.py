"""Spans of OpenTelemetry, as the server and its workers make and send them."""
