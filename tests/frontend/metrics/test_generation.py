from __future__ import annotations

from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.metrics.generation import Meter, TextMetrics
from msx_sdk.generation import GenerateDelta, Token, Usage
from tests.loops import run
from tests.prometheus import samples

ONE = (Token(id=1, text="a"),)


def read(server: ServerMetrics) -> dict[str, float]:
    text = run(server.expose()).decode()
    return {name: value for name, labels, value in samples(text) if name.startswith("msx_llm") and "le" not in labels}


def meter(*, stream: bool) -> tuple[ServerMetrics, Meter]:
    server = ServerMetrics()
    return server, ModelMetrics(server, "m", "1.0").text.meter(stream=stream)


def test_a_stream() -> None:
    server, one = meter(stream=True)
    began = one._began
    one.came(GenerateDelta(tokens=ONE), began + 1)
    one.came(GenerateDelta(index=1, tokens=ONE), began + 2)
    one.came(GenerateDelta(tokens=ONE * 2), began + 3)
    one.came(GenerateDelta(finish_reason="eos", usage=Usage(prompt=5, completion=4, cached=2)), began + 4)
    one.ended()
    seen = read(server)
    assert (seen["msx_llm_first_token_seconds_count"], seen["msx_llm_first_token_seconds_sum"]) == (1, 1)
    assert (seen["msx_llm_inter_token_seconds_count"], seen["msx_llm_inter_token_seconds_sum"]) == (2, 2)
    tokens = [seen[f"msx_llm_{name}_tokens_total"] for name in ("prompt", "completion", "cached")]
    assert tokens == [5, 4, 2]
    assert seen["msx_llm_generated_tokens_sum"] == 4
    assert seen["msx_llm_request_seconds_count"] == 1


def test_without_a_stream_nothing_is_told_of_the_time_between_tokens() -> None:
    server, one = meter(stream=False)
    one.came(GenerateDelta(tokens=ONE * 9), one._began + 1)
    one.ended()
    seen = read(server)
    assert (seen["msx_llm_first_token_seconds_count"], seen["msx_llm_inter_token_seconds_count"]) == (0, 0)
    assert seen["msx_llm_request_seconds_count"] == 1


def test_a_model_that_is_none_has_no_series() -> None:
    server = ServerMetrics()
    ModelMetrics(server, "m", "1.0")
    assert read(server) == {}
    assert isinstance(ModelMetrics(server, "n", "1.0").text, TextMetrics)
    assert read(server) != {}
