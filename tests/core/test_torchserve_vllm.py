from __future__ import annotations

from typing import Any

import pytest

from msx_core.config import parse_model_config

KEY = "handler.vllm_engine_config.served_model_name"


@pytest.mark.parametrize(
    ("given", "aliases", "warning"),
    [
        (["meta-llama/Meta-Llama-3.1-8B", "llama3-8b"], ("meta-llama/Meta-Llama-3.1-8B", "llama3-8b"), ""),
        ("mistral", ("mistral",), ""),
        (["a", "a"], ("a",), ""),
        (None, (), ""),
        (["/srv/model", "b"], ("b",), "has '/srv/model', which must begin with a letter or digit"),
        ([5], (), "5 is no further name, of which 32 are the most: it is ignored"),
        (
            [f"a{number}" for number in range(33)],
            tuple(f"a{number}" for number in range(32)),
            "'a32' is no further name",
        ),
        ({"a": 1}, (), "is neither a name nor a list of names, and is ignored"),
    ],
)
def test_served_names_are_aliases(given: Any, aliases: tuple[str, ...], warning: str) -> None:
    config, warnings = parse_model_config({"handler": {"vllm_engine_config": {"served_model_name": given}}})
    assert config.aliases == aliases
    assert "aliases" not in config.explicit
    assert [one.startswith(KEY) and warning in one for one in warnings] == ([True] if warning else [])


def test_the_key_aliases_goes_before_them() -> None:
    mapping = {"aliases": ["own"], "handler": {"vllm_engine_config": {"served_model_name": "other"}}}
    assert parse_model_config(mapping)[0].aliases == ("own",)


def test_other_handlers_sections_mean_nothing() -> None:
    assert parse_model_config({"handler": {"vllm_engine_config": 5}})[0].aliases == ()


@pytest.mark.parametrize(
    ("engine", "own", "found"),
    [
        ({"tensor_parallel_size": 4}, {}, ("custom", 4)),
        ({"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, {}, ("custom", 4)),
        ({"tensor_parallel_size": 1}, {}, ("", 0)),
        ({"tensor_parallel_size": "many"}, {}, ("", 0)),
        ({"tensor_parallel_size": 4}, {"parallelLevel": 2}, ("custom", 2)),
        ({"tensor_parallel_size": 4}, {"parallelType": "custom", "parallelLevel": 4}, ("custom", 4)),
    ],
)
def test_sizes_ask_for_devices(engine: dict[str, Any], own: dict[str, Any], found: tuple[str, int]) -> None:
    config, warnings = parse_model_config({**own, "handler": {"vllm_engine_config": engine}})
    assert (config.parallel_type, config.parallel_level) == found
    assert warnings == []
