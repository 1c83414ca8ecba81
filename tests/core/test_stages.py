"""`stages:`, `routes:` and `env:` in a model-config.yaml."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.config import ModelConfig, Pipeline, parse_model_config
from msx_core.values import ConfigError

H = {"handler": "h.py"}


def pipeline(stages: dict[str, Any], **above: Any) -> Pipeline:
    found = parse_model_config({**above, "stages": stages})[0].pipeline
    assert found is not None
    return found


def refused(mapping: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_model_config(mapping)
    return str(raised.value)


def test_what_stands_above_holds_for_all() -> None:
    stages = pipeline(
        {"a": {**H, "workers": 2, "device": "none"}, "b": {**H, "batchSize": 16, "own": 1}},
        batchSize=4,
        maxBatchDelay=7,
        routine="x",
    ).stages
    a, b = stages["a"].config, stages["b"].config
    assert (a.batch_size, a.max_batch_delay, a.min_workers, a.max_workers, a.device_type) == (4, 7, 2, 2, "cpu")
    assert (b.batch_size, b.min_workers, b.device_type, b.stages) == (16, None, None, None)
    assert b.raw == {"batchSize": 16, "maxBatchDelay": 7, "routine": "x", "own": 1}
    assert (stages["a"].edge_capacity, stages["b"].before) == (128, ("a",))


def test_a_registration_replaces_what_stands_above() -> None:
    config = parse_model_config({"batchSize": 4, "stages": {"a": H, "b": {**H, "batchSize": 16}}})[0]
    found = config.with_overrides(batch_size=8).pipeline
    assert found is not None
    assert [one.config.batch_size for one in found.stages.values()] == [8, 16]


def test_room_for_two_batches() -> None:
    stages = pipeline({"a": H, "b": {**H, "batchSize": 100}, "c": {**H, "edgeCapacity": 3}}).stages
    assert [one.edge_capacity for one in stages.values()] == [128, 200, 3]


def test_a_graph() -> None:
    found = pipeline({"a": H, "b": H, "c": {**H, "from": "a"}, "d": {**H, "from": ["c", "b"]}})
    assert found.main.before == {"a": (), "b": ("a",), "c": ("a",), "d": ("c", "b")}
    assert (found.main.first, found.main.last) == ("a", "d")


def test_routes_share_stages() -> None:
    stages = {"image": H, "text": {**H, "from": []}, "infer": {**H, "from": ["image", "text"]}, "end": H}
    found = pipeline(stages, routes={"/images": {"first": "image"}, "text": {"first": "text", "last": "infer"}})
    assert found.routes["/images"].before == {"image": (), "infer": ("image",), "end": ("infer",)}
    assert found.routes["text"].before == {"text": (), "infer": ("text",)}
    assert found.main is found.routes["/images"]


def test_no_stages() -> None:
    assert ModelConfig().pipeline is None


@pytest.mark.parametrize(
    ("stages", "sentence"),
    [
        ({}, "stages: {} is not a mapping of names to stages"),
        ([], "stages: [] is not a mapping of names to stages"),
        ({"a": None}, "stages.a: None is not a mapping with the key handler"),
        ({"a": {}}, "stages.a: has no handler: give a file of the archive or a built-in handler"),
        ({"a b": H}, "stages: 'a b' is not a name of a stage: at most 64 letters, digits, '_' and '-'"),
        ({"a": {**H, "from": "b"}, "b": H}, "stages: a -> b -> a is a cycle (from)"),
        ({"a": H, "b": {**H, "from": "aa"}}, "stages.b.from: 'aa' is not a stage (a, b)"),
        ({"a": H, "b": {**H, "from": 1}}, "stages.b.from: 1 is not a name of a stage, or a list of names"),
        (
            {"a": H, "b": {**H, "from": []}, "c": {**H, "from": ["a", "b"]}},
            "stages: a, b have no stage before them, and a graph without routes: has one of these starts: join them by "
            "from, or give each route its first stage",
        ),
        (
            {"a": H, "b": H, "c": {**H, "from": "a"}},
            "stages: b, c have no stage after them, and a graph without routes: has one of these ends: join them by "
            "from, or give each route its last stage",
        ),
        (
            {"a": {**H, "stages": {}}},
            "stages.a.stages: a stage has no stages of its own; stages: stands beside stages:",
        ),
        (
            {"a": {**H, "python": "vllm"}},
            "stages.a.python: a stage has no python of its own; python: stands beside stages:",
        ),
        (
            {"a": {**H, "workers": 1, "minWorkers": 1}},
            "stages.a.workers and stages.a.minWorkers both say how many there are: give one of them",
        ),
        ({"a": {**H, "workers": -1}}, "stages.a.workers: -1 is not an integer of 0 or more"),
        (
            {"a": {**H, "aliases": ["b"]}},
            "stages.a.aliases: a stage has no aliases of its own; aliases: stands beside stages:",
        ),
        ({"a": {**H, "device": "tpu"}}, "stages.a.device: 'tpu' is not one of none, npu, gpu, cpu"),
        ({"a": {**H, "minWorkers": 3, "maxWorkers": 1}}, "stages.a: minWorkers: 3 is more than maxWorkers: 1"),
        (
            {"a": {**H, "continuousBatching": True}, "b": H},
            "stages.a: continuousBatching works in a last stage alone, because a stage's whole result goes to the next",
        ),
        (
            {"a": {**H, "sequenceBatching": True, "sequenceMaxIdleMSec": 5}},
            "stages.a: sequenceBatching does not work in a stage, because a sequence stays with one worker and stages "
            "do not; serve it as a model without stages",
        ),
        ({f"s{n}": H for n in range(33)}, "stages: has 33 stages, and at most 32 are allowed"),
    ],
)
def test_refusals_of_stages(stages: Any, sentence: str) -> None:
    assert refused({"stages": stages}) == sentence


@pytest.mark.parametrize(
    ("routes", "sentence"),
    [
        (
            {"/": {}},
            "routes: '/' is neither a name (letters, digits, '_', '-') nor a path that begins with '/', such as "
            "/inference",
        ),
        ({"x": {"first": "c"}}, "routes.x.first: 'c' is not a stage (a, b)"),
        ({"x": {"first": "b", "last": "a"}}, "routes.x: no way leads from stage b to stage a"),
        (
            {"x": ["a", "b"]},
            "routes.x: ['a', 'b'] is not a mapping with the keys first and last, which name stages, bodies and replies",
        ),
        ({"x": {"last": "a"}}, "routes: no route has the stage b: add it to one, or remove the stage"),
        ({}, "routes: {} is not a mapping of 1 to 64 names or paths to first and last stages"),
    ],
)
def test_refusals_of_routes(routes: Any, sentence: str) -> None:
    assert refused({"stages": {"a": H, "b": H}, "routes": routes}) == sentence


def test_bodies_and_replies_of_routes_and_stages() -> None:
    """A route says them, else its first and its last stage, which have what stands above them."""
    stages = {"a": {**H, "bodies": "msgpack"}, "b": {**H, "from": []}, "c": {**H, "from": ["a", "b"]}, "d": H}
    routes = {"/v1": {"last": "d", "first": "a"}, "/own": {"first": "b", "last": "c", "bodies": "raw"}}
    found = pipeline(stages, routes=routes, replies="json")
    assert [(route.bodies, route.replies) for route in found.routes.values()] == [("msgpack", "json"), ("raw", "json")]
    told = {name: stage.config.raw for name, stage in found.stages.items()}
    assert told["b"] == {"bodies": "raw", "replies": "json"}, "which the route says"
    assert {name: raw["bodies"] for name, raw in told.items()} == {"a": "msgpack", "b": "raw"} | dict.fromkeys(
        "cd", "msgpack"
    )


def test_without_them_nothing_is_told() -> None:
    found = pipeline({"a": H, "b": H})
    assert (found.main.bodies, found.main.replies) == (None, None)
    assert [stage.config.raw for stage in found.stages.values()] == [{}, {}]


def test_bodies_of_some_routes_alone() -> None:
    stages = {"a": H, "b": {**H, "from": []}, "c": {**H, "from": ["a", "b"]}}
    routes = {"x": {"first": "a", "bodies": "raw"}, "y": {"first": "b"}}
    assert refused({"stages": stages, "routes": routes}) == (
        "routes: y has no bodies, and others have: give bodies to the route or to the first stage of each, or once "
        "above the stages"
    )
    routes = {"x": {"first": "a", "bodies": "xml"}, "y": {"first": "b"}}
    assert refused({"stages": stages, "routes": routes}) == (
        "routes.x.bodies: 'xml' is not one of json, msgpack, raw, form"
    )


def test_split_instances() -> None:
    sentence = refused({"splitInstances": True, "stages": {"a": H, "b": H}})
    assert sentence == "splitInstances: a model with stages has one job a request: leave it out"


def test_routes_without_stages() -> None:
    assert refused({"routes": {}}).startswith("routes: has no effect without stages")


def test_env() -> None:
    config, _ = parse_model_config({"env": {"OMP_NUM_THREADS": 4, "NAME": "x"}})
    assert config.environment(3) == {"OMP_NUM_THREADS": "4", "NAME": "x"}
    config, _ = parse_model_config({"env": [{"A": "1"}, {"A": "2"}], "minWorkers": 2})
    assert [config.environment(place)["A"] for place in range(3)] == ["1", "2", "1"]
    assert ModelConfig().environment(0) == {}


@pytest.mark.parametrize(
    "name",
    [
        "RANK",
        "LOCAL_WORLD_SIZE",
        "RANK_ID",
        "DEVICE_ID",
        "MASTER_ADDR",
        "ASCEND_RT_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "PYTHONPATH",
        "LD_PRELOAD",
    ],
)
def test_variables_that_a_model_cannot_set(name: str) -> None:
    sentence = refused({"env": {name: "secret"}})
    assert sentence.startswith(f"env.{name}: ")
    assert "secret" not in sentence


@pytest.mark.parametrize(
    "env", ["secret", ["secret"], {"A": ["secret"]}, {"A": True}, {"A B": "secret"}, [{"A": "secret"}], []]
)
def test_refusals_of_env_do_not_tell_values(env: Any) -> None:
    assert "secret" not in refused({"env": env, "minWorkers": 2})
