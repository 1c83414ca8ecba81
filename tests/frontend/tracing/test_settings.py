from __future__ import annotations

import pytest

from msx_frontend.config import ServerConfig
from msx_frontend.tracing.settings import TracingSettings, tracing_settings

URL = "http://127.0.0.1:4318"
FROM_ENV = {"OTEL_EXPORTER_OTLP_ENDPOINT": URL}


@pytest.mark.parametrize(
    ("config", "env", "settings"),
    [
        ({}, {}, None),
        ({"otlp_endpoint": URL}, {}, (URL, 1.0)),
        ({"otlp_endpoint": URL, "trace_sample_ratio": 0.25}, {}, (URL, 0.25)),
        ({}, FROM_ENV, ("", 1.0)),
        ({}, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": URL}, ("", 1.0)),
        ({}, {**FROM_ENV, "OTEL_SDK_DISABLED": "true"}, None),
        ({"otlp_endpoint": URL}, {"OTEL_SDK_DISABLED": "true"}, (URL, 1.0)),
        ({}, {**FROM_ENV, "OTEL_TRACES_SAMPLER": "always_off"}, ("", 0.0)),
        ({}, {**FROM_ENV, "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"}, ("", 0.1)),
        ({}, {**FROM_ENV, "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "many"}, ("", 1.0)),
        ({"trace_sample_ratio": 0.5}, {**FROM_ENV, "OTEL_TRACES_SAMPLER": "always_off"}, ("", 0.5)),
    ],
)
def test_the_configuration_goes_before_the_environment(
    config: dict[str, object], env: dict[str, str], settings: tuple[str, float] | None
) -> None:
    found = tracing_settings(ServerConfig(**config), env)  # type: ignore[arg-type]
    assert found == (None if settings is None else TracingSettings(*settings))


def test_workers_are_told() -> None:
    assert TracingSettings(URL, 1.0).environment == {"MSX_TRACING": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": URL}
    assert TracingSettings("", 1.0).environment == {"MSX_TRACING": "1"}
