"""Spans of requests, for OpenTelemetry: made of what a job's record has already, when it has ended."""
