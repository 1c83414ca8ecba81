"""deploy/kserve: runtimes and examples are valid, belong together, and are what the server knows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from msx_frontend.config import ServerConfig
from msx_net.http.router import Router
from tests.deploy.chart import DEPLOY, Manifest
from tests.deploy.command_line import settings_of
from tests.deploy.custom_resources import core_problems, problems
from tests.frontend.apis.families import of_listener

FOLDER = DEPLOY / "kserve"
GRACE = 30
"""terminationGracePeriodSeconds of Kubernetes where nobody says more."""


def documents(name: str) -> list[Manifest]:
    """A `List` is its items."""
    found = [one for one in yaml.safe_load_all((FOLDER / name).read_text()) if one]
    return [item for one in found for item in (one["items"] if one["kind"] == "List" else [one])]


FILES = ("clusterservingruntime.yaml", "clusterservingruntime-gpu.yaml")
RUNTIMES = {one["metadata"]["name"]: one["spec"] for file in FILES for one in documents(file)}
ON_GPUS = [one["metadata"]["name"] for one in documents(FILES[1])]
SERVICES = {one["metadata"]["name"]: one["spec"]["predictor"]["model"] for one in documents("inferenceservices.yaml")}

every_runtime = pytest.mark.parametrize("name", RUNTIMES)


def container(name: str) -> dict[str, Any]:
    (found,) = RUNTIMES[name]["containers"]
    made: dict[str, Any] = found
    return made


@pytest.mark.parametrize("version", ["1.25", "1.37"])
@pytest.mark.parametrize("file", [*FILES, "inferenceservices.yaml"])
def test_members(file: str, version: str) -> None:
    assert [problem for one in documents(file) for problem in problems(one, version)] == []


@pytest.mark.parametrize("version", ["1.25", "1.37"])
@every_runtime
def test_the_pod_of_a_runtime_is_valid(name: str, version: str) -> None:
    """With its volumes, and where KServe mounts the models."""
    models = {"name": "models", "mountPath": "/mnt/models", "readOnly": True}
    own = container(name)
    mounted = {**own, "volumeMounts": [*own["volumeMounts"], models]}
    volumes = [*RUNTIMES[name]["volumes"], {"name": "models", "emptyDir": {}}]
    pod = {"containers": [mounted], "volumes": volumes}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod}
    assert core_problems(manifest, version) == []
    assert {one["name"] for one in mounted["volumeMounts"]} == {one["name"] for one in volumes}


def settings(name: str, folder: Path) -> ServerConfig:
    """The runtime's arguments as the server reads them, on KServe's TorchServe configuration."""
    (folder / "config").mkdir()
    (folder / "model-store").mkdir()
    file = "inference_address=http://0.0.0.0:8085\nmanagement_address=http://0.0.0.0:8085\n"
    (folder / "config" / "config.properties").write_text(file)
    loaded = settings_of(container(name), {"/mnt/models": str(folder), "{{.Name}}": "m"})
    assert loaded.notices == []
    return loaded.config


@every_runtime
def test_the_server_knows_the_arguments(name: str, tmp_path: Path) -> None:
    config = settings(name, tmp_path)
    assert config.inference_address.port == container(name)["ports"][0]["containerPort"] == 8080
    assert {config.management_address.host, config.grpc_management_address} == {"127.0.0.1"}
    assert {config.inference_address.host, config.metrics_address.host, config.grpc_inference_address} == {"0.0.0.0"}
    assert config.disable_token_authorization
    assert str(config.metrics_address.port) == RUNTIMES[name]["annotations"]["prometheus.kserve.io/port"]
    assert config.drain_timeout + 10 <= GRACE
    writable = {mount["mountPath"] for mount in container(name)["volumeMounts"]}
    assert str(config.state_dir) in writable
    assert container(name)["securityContext"]["readOnlyRootFilesystem"] is True


@every_runtime
def test_probes_ask_routes_that_need_no_key(name: str) -> None:
    router = Router(families := of_listener("inference"), families[0])
    for probe in ("readinessProbe", "livenessProbe"):
        asked = container(name)[probe]["httpGet"]
        match = router.find("GET", asked["path"])
        assert (match.route is not None, match.kinds, asked["port"]) == (True, (), 8080)


@every_runtime
def test_the_port_of_grpc_is_named_h2c(name: str) -> None:
    (port,) = container(name)["ports"]
    assert port["name"] == ("h2c" if "grpc-v2" in RUNTIMES[name]["protocolVersions"] else "http1")


ENVELOPES = {"v1": "kserve", "v2": "kservev2", "grpc-v2": "kservev2"}


def test_the_envelope_of_torchserves_handlers_follows_the_protocol(tmp_path: Path) -> None:
    for name, spec in RUNTIMES.items():
        (tmp_path / name).mkdir()
        envelope = settings(name, tmp_path / name).service_envelope
        is_torchserves = spec["supportedModelFormats"][0]["name"] == "pytorch"
        assert {envelope} == {ENVELOPES[one] if is_torchserves else None for one in spec["protocolVersions"]}, name


def test_one_runtime_serves_a_format_and_protocol() -> None:
    """KServe refuses two with one priority that it may choose by itself; those of GPUs have to be named."""
    served = Counter(
        (known["name"], protocol)
        for name, spec in RUNTIMES.items()
        if name not in ON_GPUS
        for known in spec["supportedModelFormats"]
        for protocol in spec["protocolVersions"]
    )
    assert set(served.values()) == {1}
    assert {known for known, _ in served} == {"mindspore", "pytorch", "huggingface"}
    for known in ("mindspore", "pytorch"):
        assert {protocol for other, protocol in served if other == known} == {"v1", "v2", "grpc-v2"}


@pytest.mark.parametrize("name", SERVICES)
def test_examples_find_a_runtime(name: str) -> None:
    wanted = SERVICES[name]
    form, protocol = wanted["modelFormat"], wanted["protocolVersion"]
    fitting = [
        runtime
        for runtime, spec in RUNTIMES.items()
        for known in spec["supportedModelFormats"]
        if known["name"] == form["name"]
        and form.get("version") in (None, known["version"])
        and protocol in spec["protocolVersions"]
    ]
    chosen = [runtime for runtime in fitting if runtime not in ON_GPUS]
    assert len(chosen) == 1
    assert wanted.get("runtime", chosen[0]) in fitting


def test_a_format_that_kserve_serves_itself_is_not_taken_from_it() -> None:
    """Its own runtimes have the priority 1 for huggingface, and 2 for pytorch."""
    for name, spec in RUNTIMES.items():
        (known,) = spec["supportedModelFormats"]
        assert known["autoSelect"] == (known["name"] != "huggingface" and name not in ON_GPUS)
        assert known.get("priority", 1) == 1


def test_runtimes_of_gpus_are_those_of_torchserve_with_a_gpu() -> None:
    """Another image, a GPU in requests and limits, more memory, and no start without a GPU; else nothing differs."""
    assert [name.replace("-gpu", "") for name in ON_GPUS] == [
        name for name in RUNTIMES if "torchserve" in name and name not in ON_GPUS
    ]
    for name in ON_GPUS:
        plain, own = container(name.replace("-gpu", "")), container(name)
        assert {key for key in plain | own if plain.get(key) != own.get(key)} == {"image", "args", "resources"}
        assert own["args"] == [*plain["args"], "--set=accelerator=nvidia"]
        assert [own["resources"][part]["nvidia.com/gpu"] for part in ("requests", "limits")] == ["1", "1"]
    assert {one.get("runtime") for one in SERVICES.values()} & set(ON_GPUS), "an example"


def test_there_is_an_example_of_each_protocol() -> None:
    assert {one["protocolVersion"] for one in SERVICES.values()} == set(ENVELOPES)
