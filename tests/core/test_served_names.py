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
