"""Workflow specs: TorchServe's keys and defaults, and what cannot be meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from msx_core.values import ConfigError
from msx_core.workflow_spec import InvalidDag, NodeSettings, load_workflow_spec, parse_workflow_spec

SPEC = """
models:
  min-workers: 2
  max-workers: 3
  batch-size: 4
  max-batch-delay: 60
  retry-attempts: 5
  timeout-ms: 6000
  m1:
    url: m1.mar
  m2:
    url: https://example.org/m2.mar
    min-workers: 1
    max-workers: 1
    timeout-ms: 100
  unused:
    url: unused.mar
dag:
  pre: [m1, m2]
  m1: [post]
  m2: [post]
"""


def parse(text: str) -> Any:
    return parse_workflow_spec(yaml.safe_load(text))[0]


def test_models_inherit_the_defaults_and_override_them() -> None:
    spec = parse(SPEC)
    shared = NodeSettings(
        min_workers=2, max_workers=3, batch_size=4, max_batch_delay=60, retry_attempts=5, timeout_ms=6000
    )
    assert spec.defaults == shared
    assert (spec.nodes["m1"].url, spec.nodes["m1"].settings) == ("m1.mar", shared)
    m2 = spec.nodes["m2"].settings
    assert (m2.min_workers, m2.max_workers, m2.batch_size, m2.timeout_ms) == (1, 1, 4, 100)


def test_functions_have_one_worker_and_no_batches() -> None:
    """TorchServe gives them the retries and time-outs of the section only."""
    spec = parse(SPEC)
    assert sorted(spec.functions) == ["post", "pre"]
    assert spec.nodes["pre"].settings == NodeSettings(retry_attempts=5, timeout_ms=6000)


def test_a_function_may_have_settings_of_its_own() -> None:
    spec = parse("models: {pre: {min-workers: 3, timeout-ms: 7}}\ndag: {pre: []}")
    settings = spec.nodes["pre"].settings
    assert (spec.functions, settings.min_workers, settings.most_workers, settings.timeout_ms) == (["pre"], 3, 3, 7)


def test_models_outside_of_the_graph_are_left_out() -> None:
    assert sorted(parse(SPEC).nodes) == ["m1", "m2", "post", "pre"]


def test_defaults_are_torchserves() -> None:
    spec = parse("dag: {f: []}")
    assert (spec.defaults.min_workers, spec.defaults.retry_attempts, spec.defaults.timeout_ms) == (1, 1, 10_000)


def test_the_graph() -> None:
    dag = parse(SPEC).dag
    assert str(dag) == "{pre=[m1, m2], m1=[post], m2=[post]}"
    assert dag.predecessors["post"] == ("m1", "m2")
    assert dag.leaves == ["post"]
    assert dag.order[0] == "pre"
    assert dag.order[-1] == "post"


def test_a_node_without_successors() -> None:
    assert str(parse("dag: {f: }").dag) == "{f=[]}"


def test_several_leaves() -> None:
    assert parse("dag: {a: [b, c]}").dag.leaves == ["b", "c"]


def test_an_edge_that_is_given_twice_counts_once() -> None:
    assert parse("dag: {a: [b, b]}").dag.predecessors["b"] == ("a",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dag: {a: [b], b: [c], c: [b]}", "Not a valid DAG: b -> c -> b is a cycle"),
        ("dag: {a: [a]}", "Not a valid DAG: a -> a is a cycle"),
        ("dag: {}", "Not a valid DAG: it has no nodes; name at least one under dag"),
        (
            "dag: {a: [c], b: [c]}",
            "DAG should have only one start node: it has a, b, which no node leads to",
        ),
    ],
)
def test_graphs_that_cannot_be_run(text: str, message: str) -> None:
    with pytest.raises(InvalidDag) as raised:
        parse(text)
    assert str(raised.value) in (message, message.replace("b -> c -> b", "c -> b -> c"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "[] is not a mapping with the keys models and dag"),
        ("models: {}", "dag: None is not a mapping of node names to lists of the nodes that follow"),
        ("models: [a]\ndag: {a: []}", "models: ['a'] is not a mapping of settings and models"),
        ("dag: {a: b}", "dag.a: 'b' is not a list of the nodes that follow, like [b]"),
        ("dag: {a: [1]}", "dag.a: 1 is not a name of a node: at most 197 letters, digits, '_', '-' and '.'"),
        ("dag: {a/b: []}", "dag: 'a/b' is not a name of a node: at most 197 letters, digits, '_', '-' and '.'"),
        ("dag: {a-b: []}", "dag: a-b is not under models, and is not a valid name of a function"),
        ("models: {a-b: {ulr: x}}\ndag: {a-b: []}", "dag: a-b has no url, and is not a valid name of a function"),
        ("models: {m: x.mar}\ndag: {m: []}", "models.m: 'x.mar' is not a mapping with the key url"),
        ("models: {m: {url: 1}}\ndag: {m: []}", "models.m.url: 1 is not a text"),
        ("models: {batch-size: 0}\ndag: {m: []}", "models.batch-size: 0 is not an integer of 1 or more"),
        (
            "models: {m: {url: x, min-workers: 2, max-workers: 1}}\ndag: {m: []}",
            "models.m: max-workers 1 is less than min-workers 2",
        ),
    ],
)
def test_specs_that_cannot_be_meant(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(text)
    assert str(raised.value) == message


def test_unknown_keys_are_warned_of() -> None:
    text = "dags: {}\nmodels: {timeout: 3, timeout-mss: 3, m: {url: x, retries: 1}}\ndag: {m: []}"
    assert parse_workflow_spec(yaml.safe_load(text))[1] == [
        "dags: is not a known key and is ignored",
        "models.timeout: is not a known key and is ignored",
        "models.timeout-mss: is not a known key and is ignored; did you mean timeout-ms?",
        "models.m.retries: is not a known key and is ignored",
    ]


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("dag: {a: [a]}")
    with pytest.raises(InvalidDag, match=r"is a cycle \(spec\.yaml\)\."):
        load_workflow_spec(path)
    path.write_text("dag: 1")
    with pytest.raises(ConfigError, match=r"^spec\.yaml: dag: 1 is not"):
        load_workflow_spec(path)
