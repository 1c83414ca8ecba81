"""Whether requests are traced, and how many: by the configuration, or by OpenTelemetry's variables.

https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

from collections.abc import Mapping
from typing import NamedTuple

from msx_core.tracing.variables import ENDPOINT, OF_TRACES, TRACING
from msx_frontend.config import ServerConfig

SAMPLER, ARGUMENT, DISABLED = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_SDK_DISABLED"


class TracingSettings(NamedTuple):
    endpoint: str
    """Address of the OTLP collector; "" where the environment has it."""
    ratio: float
    """Share of requests to sample among those whose clients have not decided."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a worker whose handler may have spans of its own."""
        return {TRACING: "1", **({ENDPOINT: self.endpoint} if self.endpoint else {})}


def tracing_settings(config: ServerConfig, env: Mapping[str, str]) -> TracingSettings | None:
    """None where requests are not traced. What the configuration says goes before the environment."""
    endpoint = config.otlp_endpoint or ""
    asked = endpoint or env.get(OF_TRACES) or env.get(ENDPOINT)
    if not asked or (not endpoint and env.get(DISABLED, "").strip().lower() == "true"):
        return None
    return TracingSettings(endpoint, _ratio(config, env))


def _ratio(config: ServerConfig, env: Mapping[str, str]) -> float:
    if config.trace_sample_ratio is not None:
        return config.trace_sample_ratio
    sampler = env.get(SAMPLER, "parentbased_always_on").strip()
    if sampler.endswith("always_off"):
        return 0.0
    if not sampler.endswith("traceidratio"):
        return 1.0
    try:
        return min(max(float(env.get(ARGUMENT, "1")), 0.0), 1.0)
    except ValueError:
        return 1.0
