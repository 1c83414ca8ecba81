"""The Compose file fits the image, the server's limits, and the files that it mounts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from msx_frontend.config.server_config import ServerConfig
from tests.deploy.dockerfile import of

DEPLOY = Path(__file__).parents[2] / "deploy"
FOLDER = DEPLOY / "compose"
TEXT = (FOLDER / "docker-compose.yaml").read_text()
FILE = yaml.safe_load(TEXT)
SERVICES = FILE["services"]
MSX = SERVICES["msx"]
WITH_GPUS = yaml.safe_load((FOLDER / "docker-compose.gpu.yaml").read_text())
AFTER_THE_DRAIN = 10
"""Seconds; docs/server.md has the sum."""


def mounts(service: dict[str, Any]) -> list[tuple[str, str]]:
    parts = [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", volume).split(":") for volume in service["volumes"]]
    return [(source, to) for source, to, *_ in parts]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_may_do_little(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["tmpfs"] == ["/tmp"]
    assert {"mem_limit", "cpus", "pids_limit"} <= service.keys()
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert "healthcheck" in service or of("HEALTHCHECK")
    assert "privileged" not in service


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_mounted_is_there(name: str) -> None:
    """Files of this checkout, volumes of this file, and the model store, which is the user's."""
    for source, _ in mounts(SERVICES[name]):
        if source.startswith(".."):
            assert (FOLDER / source).exists(), source
        else:
            assert source in FILE["volumes"] or source == "./model-store", source


def test_the_image_is_ours() -> None:
    build = MSX["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).is_file()
    assert build["args"].keys() <= {rest.partition("=")[0] for rest in of("ARG")}
    ports = {int(port.rpartition(":")[2]) for port in MSX["ports"]}
    assert ports == {int(port) for port in of("EXPOSE")[0].split()} - {8082}
    assert ("state", of("VOLUME")[0]) in mounts(MSX)


def test_a_stop_may_take_as_long_as_the_server_drains() -> None:
    assert int(MSX["stop_grace_period"].rstrip("s")) >= ServerConfig().drain_timeout + AFTER_THE_DRAIN


def test_no_secret_stands_in_it() -> None:
    """`${NAME:?…}` refuses to start without a value; an empty key is none."""
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|KEY|SECRET|TOKEN", name):
                assert re.fullmatch(r"\$\{\w+(:\?.*|:-)\}", value), name


def test_prometheus_asks_the_listener_of_metrics() -> None:
    file = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text())
    (scrape,) = file["scrape_configs"]
    host, port = scrape["static_configs"][0]["targets"][0].split(":")
    assert host in SERVICES
    assert int(port) == ServerConfig().metrics_address.port
    rules = dict(mounts(SERVICES["prometheus"]))["../prometheus/alerts.yaml"]
    assert Path(rules).name in file["rule_files"]


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "msx-serve.yaml").read_text())["providers"]
    to = dict(mounts(SERVICES["grafana"]))["../grafana/dashboard.json"]
    assert str(Path(to).parent) == provider["options"]["path"]


def test_the_file_for_gpus_gives_them_to_the_server_alone() -> None:
    """Docker wants the capability `gpu`; `count` is `all` or a number."""
    assert WITH_GPUS.keys() == {"services"}
    assert WITH_GPUS["services"].keys() == {"msx"}
    added = WITH_GPUS["services"]["msx"]
    assert added["deploy"] == {
        "resources": {
            "reservations": {"devices": [{"driver": "nvidia", "count": "${MSX_GPUS:-all}", "capabilities": ["gpu"]}]}
        }
    }
    assert added["ulimits"] == {"memlock": -1}
    assert "shm_size" in MSX, "NCCL shares memory, too"


def test_the_file_for_gpus_builds_with_torch() -> None:
    build = WITH_GPUS["services"]["msx"]["build"]
    assert build == {"args": {"EXTRAS": "${MSX_EXTRAS-torch}"}}
    assert MSX["build"]["args"]["EXTRAS"].startswith("${MSX_EXTRAS-"), "the same variable"
