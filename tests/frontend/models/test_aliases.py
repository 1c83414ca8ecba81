"""Aliases of models: what they mean, what they may not be, and how long they stay."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from msx_core.service_errors import BadRequest, ModelNotFound, ServiceError
from msx_frontend.generation.directory import Directory
from msx_frontend.models.aliases import alias_list
from msx_frontend.models.describe import describe
from msx_frontend.models.traffic import TrafficRule
from msx_sdk.generation import GENERATE, AdapterFiles, Capabilities
from tests.frontend.harness import FakeGroup, Harness, Scenario, open_harness
from tests.frontend.queueing.instance_requests import make_request
from tests.loops import run


def in_harness(folder: Path, scenario: Scenario) -> None:
    async def test() -> None:
        async with open_harness(folder) as harness:
            await scenario(harness)

    run(test())


def names(harness: Harness) -> dict[str, str]:
    return dict(harness.registry.aliases.names.aliases)


async def refused(call: Any) -> str:
    with pytest.raises(ServiceError) as caught:
        await call
    assert caught.value.status == 409
    return caught.value.message


def test_jobs_have_the_own_name(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register(config="aliases: [gpt-4, org/name]\n")
        for alias in ("gpt-4", "org/name"):
            assert harness.submit(alias).model_name == "m"
            assert harness.registry.find(alias, "1.0") is harness.registry.find("m")
            assert harness.registry.versions_of(alias) == harness.registry.versions_of("m")
        assert describe(harness.registry.find("m"))["aliases"] == ["gpt-4", "org/name"]
        with pytest.raises(ModelNotFound, match="Model not found: gpt-5"):
            harness.submit("gpt-5")

    in_harness(tmp_path, scenario)


def test_traffic_is_divided_for_an_alias(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register(config="aliases: [gpt-4]\n")
        await harness.register(version="2.0")
        await harness.management.divide_traffic("m", TrafficRule({"2.0": 1.0}))
        harness.submit("gpt-4")
        assert [version.queue.busy for version in harness.registry.versions_of("m")] == [False, True]
        assert harness.registry.traffic("gpt-4") == TrafficRule({"2.0": 1.0})

    in_harness(tmp_path, scenario)


def test_instances_have_the_own_name(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register(config="aliases: [gpt-4]\n")
        request = make_request("r", 2)
        request.model_name = "gpt-4"
        harness.registry.submit_instances(request)
        assert request.model_name == "m"

    in_harness(tmp_path, scenario)


def test_a_list_of_an_operator_replaces_those_of_the_versions(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register(config="aliases: [a, b]\n")
        await harness.register(version="2.0", config="aliases: [b, c]\n")
        assert names(harness) == {"a": "m", "b": "m", "c": "m"}
        await harness.management.unregister("m", "2.0")
        assert names(harness) == {"a": "m", "b": "m"}
        await harness.management.replace_aliases("m", ["d"])
        await harness.register(version="3.0", config="aliases: [e]\n")
        assert names(harness) == {"d": "m"}
        await harness.management.replace_aliases("m", [])
        assert names(harness) == {}
        assert "aliases" not in describe(harness.registry.find("m"))

    in_harness(tmp_path, scenario)


def test_an_alias_never_hides_a_model(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register(config="aliases: [gpt-4]\n")
        await harness.register("n")
        replace = harness.management.replace_aliases
        assert "Alias m of model n is the name of another model" in await refused(replace("n", ["m"]))
        assert "Alias gpt-4 of model n is an alias of model m" in await refused(replace("n", ["gpt-4"]))
        said = await refused(harness.register("gpt-4"))
        assert said.startswith("Model gpt-4 cannot be registered: gpt-4 is an alias of model m. Take it from there")
        assert "is an alias of model m" in await refused(harness.register("k", config="aliases: [gpt-4]\n"))
        assert not harness.registry.has_model("k")
        await replace("m", [])
        await harness.register("gpt-4")
        assert "is the name of another model" in await refused(replace("m", ["gpt-4"]))

    in_harness(tmp_path, scenario)


@pytest.mark.parametrize("name", ["m", "gpt-4"])
def test_a_served_name_of_vllm_is_refused_like_an_alias(tmp_path: Path, name: str) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register(config="aliases: [gpt-4]\n")
        config = f"handler: {{vllm_engine_config: {{served_model_name: {name}}}}}\n"
        assert f"Alias {name} of model n is" in await refused(harness.register("n", config=config))

    in_harness(tmp_path, scenario)


def test_the_own_name_is_no_alias(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register(config="aliases: [m, gpt-4]\n")
        assert names(harness) == {"gpt-4": "m"}

    in_harness(tmp_path, scenario)


def test_a_version_in_the_place_of_another_brings_its_own(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register(config="aliases: [a]\n")
        await harness.register("n")
        await harness.register(config="aliases: [b]\n", replace=True, synchronous=False, initial_workers=0)
        assert names(harness) == {"b": "m"}
        with patch("msx_frontend.models.changes.installing.start_parts", side_effect=AssertionError):
            asked = harness.register(config="aliases: [n]\n", replace=True)
            assert "Alias n of model m is the name of another model" in await refused(asked)
        assert names(harness) == {"b": "m"}

    in_harness(tmp_path, scenario)


def test_a_node_of_a_workflow_has_none(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register(config="aliases: [a]\n")
        version = harness.registry.find("m")
        version.source = replace(version.source, workflow="w")
        harness.registry.aliases.put_in_force()
        assert names(harness) == {}
        assert "workflow w" in await refused(harness.management.replace_aliases("m", ["b"]))

    in_harness(tmp_path, scenario)


def test_what_could_not_be_remembered_is_refused(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register()
        harness.registry.find("m").record = None  # as when no worker has ever served
        assert "its registration was taken back" in await refused(harness.management.replace_aliases("m", ["a"]))

    in_harness(tmp_path, scenario)


def test_adapters_and_aliases_keep_apart(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        FakeGroup.offers["m"] = Capabilities(generate=True, adapters=("packed",), load_adapter=True)
        await harness.register(config="aliases: [gpt-4]\n")
        version, files = harness.registry.find("m"), AdapterFiles(id="i", folder="f", stamp="s")
        await harness.management.set_adapters(version, {"sql": files})
        for adapter in ("packed", "sql"):
            asked = harness.management.replace_aliases("m", [adapter])
            assert f"Alias {adapter} of model m is an adapter of model m" in await refused(asked)
        said = await refused(harness.management.set_adapters(version, {"gpt-4": files}))
        assert said == "lora_name: gpt-4 is an alias of model m, which requests mean: choose another name."
        found = Directory(harness.registry).find_adapted("gpt-4:sql", GENERATE)
        assert (found.version, found.adapter, found.name) == (version, "sql", "gpt-4")

    in_harness(tmp_path, scenario)


@pytest.mark.parametrize("name", ["dummy", "tgi"])
def test_a_name_of_clients_that_know_none_may_be_an_alias(tmp_path: Path, name: str) -> None:
    async def scenario(harness: Harness) -> None:
        for model in ("m", "n"):
            FakeGroup.offers[model] = Capabilities(generate=True)
            await harness.register(model)
        await harness.management.replace_aliases("n", [name])
        assert Directory(harness.registry).find(name, GENERATE).source.name == "n"

    in_harness(tmp_path, scenario)


def test_calls_that_change_a_model_take_no_alias(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register(config="aliases: [gpt-4]\n")
        change = harness.management
        for call in (
            change.scale("gpt-4", None, 0, 0, wait=False),
            change.set_default("gpt-4", "1.0"),
            change.divide_traffic("gpt-4", None),
            change.change_sleep("gpt-4", None, 1),
            change.replace_aliases("gpt-4", []),
            change.unregister("gpt-4", None),
        ):
            with pytest.raises(ModelNotFound, match="gpt-4, which is an alias: a call that changes model m names"):
                await call
        with pytest.raises(ModelNotFound, match=r"Model not found: none$"):
            await change.unregister("none", None)

    in_harness(tmp_path, scenario)


def test_they_go_with_their_model(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.register()
        await harness.management.replace_aliases("m", ["gpt-4"])
        await harness.management.unregister("m", None)
        assert (names(harness), await harness.state.load_aliases()) == ({}, {})
        await harness.register("gpt-4")
        await harness.register(config="aliases: [a]\n")
        assert names(harness) == {"a": "m"}

    in_harness(tmp_path, scenario)


def test_a_restarted_server_has_them(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        await harness.register(config="aliases: [packed]\n")
        await harness.management.replace_aliases("m", ["gpt-4", "org/name"])
        await harness.register("packed", config="aliases: [p]\n")

    async def again(harness: Harness) -> None:
        await harness.start()
        assert names(harness) == {"gpt-4": "m", "org/name": "m", "p": "packed"}

    for scenario in (first, again, again):
        in_harness(tmp_path, scenario)


def test_a_start_tells_of_those_without_effect(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def first(harness: Harness) -> None:
        await harness.register()
        await harness.register("n")
        await harness.state.save_aliases("m", ["n", "a"])  # as when a snapshot brings the other model

    async def second(harness: Harness) -> None:
        await harness.start()
        assert names(harness) == {"a": "m"}
        assert harness.registry.find("n").source.name == "n"

    in_harness(tmp_path, first)
    with caplog.at_level(logging.WARNING, "msx.startup"):
        in_harness(tmp_path, second)
    assert "alias n of model m has no effect: it is the name or an alias of another model" in caplog.messages


def test_what_was_never_answered_leaves_none(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        await harness.state.save_aliases("gone", ["a"])
        assert await harness.state.forget_unanswered() == []
        assert await harness.state.load_aliases() == {}

    in_harness(tmp_path, scenario)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["a"], 'The body must be {"aliases": ["a-name", "org/name"]}'),
        ({"aliases": "a"}, "Expected `array`, got `str`"),
        ({"aliases": [1]}, "Expected `str`, got `int`"),
        ({"aliases": [], "more": 1}, "unknown field"),
        ({"aliases": ["a", "a"]}, "The list aliases has 'a' twice."),
        ({"aliases": ["a b"]}, "The list aliases has 'a b', which must begin with a letter or digit"),
        ({"aliases": [str(number) for number in range(33)]}, "has 33 names, and 32 are the most."),
    ],
)
def test_a_wrong_list_is_refused(value: object, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        alias_list(value)
    assert said in caught.value.message


def test_versions_together_have_no_more_than_one(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        first, second = ([f"{letter}{number}" for number in range(20)] for letter in "ab")
        await harness.register(config=f"aliases: [{', '.join(first)}]\n")
        with pytest.raises(BadRequest, match="The list aliases of model m has 40 names, and 32 are the most"):
            await harness.register(version="2.0", config=f"aliases: [{', '.join(second)}]\n")

    in_harness(tmp_path, scenario)
