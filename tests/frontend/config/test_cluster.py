"""`cluster_address` and what goes with it."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from msx_frontend.config import ServerConfig, ServerConfigError
from msx_frontend.config import cluster as rules
from msx_frontend.config.cluster import check_cluster, ignored_in_cluster
from msx_frontend.config.load import load_server_config


@pytest.mark.parametrize("text", ["auto", "10.0.0.5:6379", "head-1.example.org:6379", "ray://head:10001", "[::1]:6379"])
def test_addresses(text: str) -> None:
    assert load_server_config({"cluster_address": text}, None, {})[0].cluster_address == text


@pytest.mark.parametrize("text", ["", "head", "http://head:6379", "ray://head", "head:port", "a b:1"])
def test_what_is_not_an_address(text: str) -> None:
    with pytest.raises(ServerConfigError) as info:
        load_server_config({"cluster_address": text}, None, {})
    assert str(info.value) == (
        f"cluster_address: {text!r} is not auto, host:port of Ray's head, or ray://host:port of its client server"
    )


@pytest.mark.parametrize(
    "keys", [{"worker_user": "nobody"}, {"worker_limits": ("nofile=9",)}, {"worker_no_new_privileges": True}]
)
def test_what_confines_workers_is_refused(keys: dict[str, Any]) -> None:
    """Instead of being left out on other machines without a word."""
    with pytest.raises(ServerConfigError, match="does not go with cluster_address: on the nodes"):
        check_cluster(ServerConfig(cluster_address="auto", **keys))


def test_an_address_for_agents_without_a_cluster() -> None:
    with pytest.raises(ServerConfigError, match="has no effect without cluster_address"):
        check_cluster(ServerConfig(cluster_agent_address="10.0.0.1"))


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "find_spec", lambda name: None)
    with pytest.raises(ServerConfigError) as info:
        check_cluster(ServerConfig(cluster_address="auto"))
    assert str(info.value).endswith("needs Ray, which is not installed here: pip install 'msx-serve[ray]'")
    check_cluster(ServerConfig())
    assert importlib.util.find_spec("ray")


def test_what_has_no_effect() -> None:
    given: dict[str, Any] = {"number_of_npu": 4, "simulate_devices": 4, "parallel_starts": 2, "pythons": ("a=/b",)}
    lines = list(ignored_in_cluster(ServerConfig(cluster_address="auto", **given)))
    assert [line.partition(":")[0] for line in lines] == [*given]
    assert not list(ignored_in_cluster(ServerConfig(number_of_npu=4)))
