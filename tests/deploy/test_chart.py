"""deploy/helm/msx-serve: what it renders is valid, belongs together, and is what the server knows."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from msx_frontend.cli.main import main
from msx_frontend.config.load import GivenSettings
from msx_frontend.keys.api_keys_file import parse
from msx_net.http.router import Router
from tests.deploy.chart import CHART, DEPLOY, NAMESPACE, RELEASE, VALUES, Manifest, check, notes, rendered, values_of
from tests.deploy.command_line import settings_of
from tests.deploy.custom_resources import core_problems, is_core, problems
from tests.deploy.go_functions import FUNCTIONS
from tests.frontend.apis.families import of_listener

VERSIONS = ("1.25", "1.37")
"""The oldest API that the chart is for (Chart.yaml: kubeVersion), and a new one."""
OF_VALUES = {
    "ascend": {"archives", "compiled"},
    "nvidia": {"archives"},
    "keda": {"msx-keys"},
    "ingress-tls": {"msx-server", "msx-ingress", "registry", "hub", "labels"},
    "groups": {"msx-ray"},
    "hpa": set[str](),
    "default": set[str](),
}
"""Claims and secrets that the values name, which the user has made."""

every_values = pytest.mark.parametrize("values", VALUES)


@functools.cache
def manifests(values: str) -> list[Manifest]:
    return rendered(values_of(VALUES[values]))


def of_kind(values: str, kind: str) -> list[Manifest]:
    return [one for one in manifests(values) if one["kind"] == kind]


def pod_template(values: str) -> Manifest:
    (deployment,) = of_kind(values, "Deployment")
    template: Manifest = deployment["spec"]["template"]
    return template


def container(values: str) -> Manifest:
    (found,) = pod_template(values)["spec"]["containers"]
    made: Manifest = found
    return made


def ports(values: str) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in container(values)["ports"]}


@pytest.mark.parametrize("version", VERSIONS)
@every_values
def test_manifests_are_valid(values: str, version: str) -> None:
    found = [
        problem
        for one in manifests(values)
        for problem in (core_problems(one, version) if is_core(one) else problems(one, version))
    ]
    assert found == []


@every_values
def test_names_are_unique_and_those_of_the_release(values: str) -> None:
    names = [(one["kind"], one["metadata"]["name"]) for one in manifests(values)]
    assert len(set(names)) == len(names)
    assert {name.startswith(("msx-msx-serve", "models")) for _, name in names} == {True}


@every_values
def test_selectors_find_the_pods(values: str) -> None:
    labels = pod_template(values)["metadata"]["labels"].items()
    (deployment,) = of_kind(values, "Deployment")
    selectors = [deployment["spec"]["selector"]["matchLabels"]]
    selectors += [one["spec"]["selector"] for one in of_kind(values, "Service")]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind(values, "PodDisruptionBudget")]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind(values, "NetworkPolicy")]
    assert all(selector and selector.items() <= labels for selector in selectors)
    assert not any("version" in name for name in deployment["spec"]["selector"]["matchLabels"]), "an upgrade changes it"


@every_values
def test_ports_have_one_name_everywhere(values: str) -> None:
    served = {port["name"]: port for one in of_kind(values, "Service") for port in one["spec"]["ports"]}
    assert {name: port["port"] for name, port in served.items()} == ports(values)
    assert all(port["targetPort"] == name for name, port in served.items())
    config = settings(values).config
    assert ports(values) == {
        "http": config.inference_address.port,
        "management": config.management_address.port,
        "metrics": config.metrics_address.port,
        "grpc": config.grpc_inference_port,
        "grpc-management": config.grpc_management_port,
    }
    for policy in of_kind(values, "NetworkPolicy"):
        named = {port["port"] for rule in policy["spec"]["ingress"] for port in rule.get("ports", ())}
        assert {"http", "grpc", "metrics"} <= named <= served.keys()
    for ingress in of_kind(values, "Ingress"):
        backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
        by_name = {one["metadata"]["name"]: one for one in of_kind(values, "Service")}
        assert backend["port"]["name"] in [port["name"] for port in by_name[backend["name"]]["spec"]["ports"]]


@pytest.mark.parametrize(("values", "protocol"), [("default", "kubernetes.io/h2c"), ("ingress-tls", "grpcs")])
def test_the_protocol_of_grpc(values: str, protocol: str) -> None:
    found = {p["name"]: p["appProtocol"] for one in of_kind(values, "Service") for p in one["spec"]["ports"]}
    assert (found["grpc"], found["grpc-management"]) == (protocol, protocol)


@every_values
def test_probes_ask_routes_that_need_no_key(values: str) -> None:
    families = of_listener("inference")
    router = Router(families, families[0])
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container(values)[probe]["httpGet"]
        match = router.find("GET", asked["path"])
        assert match.route is not None
        assert match.kinds == ()
        assert asked["port"] == "http"
        assert asked["scheme"].lower() == settings(values).config.inference_address.scheme


@every_values
def test_no_request_is_lost_at_a_rollout(values: str) -> None:
    """docs/server.md, "Stop": preStop, then drain_timeout, then 10 s for the ends of workers."""
    pause = int(container(values)["lifecycle"]["preStop"]["exec"]["command"][1])
    grace = pod_template(values)["spec"]["terminationGracePeriodSeconds"]
    assert pause > 2, "readiness is asked every 2 s"
    assert grace == pause + settings(values).config.drain_timeout + 10


def config_file(values: str) -> str:
    (made,) = of_kind(values, "ConfigMap")
    text: str = made["data"]["config.properties"]
    return text


def settings(values: str) -> GivenSettings:
    """The rendered configuration as the server loads it; `/models` is a folder of this machine."""
    folder = Path(os.environ["MSX_TEST_FOLDER"])
    file = folder / f"{values}.properties"
    file.write_text(config_file(values).replace("model_store=/models", f"model_store={folder}"))
    return settings_of(container(values), {"/etc/msx/config/config.properties": str(file)})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSX_TEST_FOLDER", str(tmp_path))


@every_values
def test_the_server_knows_every_key(values: str) -> None:
    loaded = settings(values)
    assert loaded.notices == []
    assert loaded.given >= {"inference_address", "state_dir", "drain_timeout", "number_of_npu"}
    assert ("number_of_gpu=" in config_file(values)) == (values == "nvidia")
    assert ("api_keys_file" in loaded.given) == (values in ("ascend", "keda"))


def test_numbers_are_not_printed_as_go_prints_floats() -> None:
    config = settings("ascend").config
    assert (config.max_request_size, config.default_response_timeout, config.bind_cores) == (65_535_000, 290, True)
    assert config.number_of_npu == 8


@every_values
def test_the_command_line_is_known(values: str) -> None:
    command, *args = container(values)["args"]
    assert "command" not in container(values), "the image's entry point sets CANN's variables"
    context = main.make_context(command, args)
    assert command == "msx-serve"
    assert context.params["models"] == tuple(values_of(VALUES[values])["models"])
    mounted = {mount["mountPath"] for mount in container(values)["volumeMounts"]}
    assert str(context.params["ts_config"].parent) in mounted


@every_values
def test_what_is_mounted_is_there(values: str) -> None:
    spec = pod_template(values)["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounts = container(values)["volumeMounts"]
    assert {mount["name"] for mount in mounts} == volumes.keys()
    known = {one["metadata"]["name"] for one in manifests(values)} | OF_VALUES[values]
    assert _named(manifests(values)) - known == set()
    config = settings(values).config
    writable = {mount["mountPath"] for mount in mounts if not mount.get("readOnly")}
    assert str(config.state_dir) in writable
    assert "/models" not in writable
    assert config.cache_dir is None or str(config.cache_dir) in writable
    assert (config.cache_dir is not None) == (values in ("ascend", "ingress-tls"))
    for path in (config.api_keys_file, config.private_key_file, config.certificate_file):
        assert path is None or str(path.parent) in {mount["mountPath"] for mount in mounts}


def _named(value: Any) -> set[str]:
    """The secrets, claims and maps that manifests name."""
    if isinstance(value, list):
        return {name for one in value for name in _named(one)}
    if not isinstance(value, dict):
        return set()
    own = {value[name] for name in ("secretName", "claimName") if name in value}
    own |= {value[name]["name"] for name in ("configMap", "secretKeyRef") if name in value}
    own |= {one["name"] for one in value.get("imagePullSecrets", ())}
    return own | {name for one in value.values() for name in _named(one)}


@every_values
def test_the_pod_is_restricted(values: str) -> None:
    """Pod Security Standards, `restricted`, and a root file system that cannot be written."""
    pod, own = pod_template(values)["spec"], container(values)["securityContext"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 1000)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert pod["automountServiceAccountToken"] is False


def test_npus() -> None:
    resources = container("ascend")["resources"]
    assert resources["requests"]["huawei.com/Ascend910"] == resources["limits"]["huawei.com/Ascend910"] == "8"
    assert pod_template("ascend")["spec"]["nodeSelector"] == {"accelerator": "huawei-Ascend910"}
    assert not any("huawei" in name for one in container("default")["resources"].values() for name in one)


def test_gpus() -> None:
    resources, spec = container("nvidia")["resources"], pod_template("nvidia")["spec"]
    assert resources["requests"] == {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"}
    assert resources["limits"] == {"memory": "64Gi", "nvidia.com/gpu": "2"}
    assert spec["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    assert spec["runtimeClassName"] == "nvidia"
    config = settings("nvidia").config
    assert (config.accelerator, config.number_of_npu) == ("nvidia", 2)
    others = [values for values in VALUES if values != "nvidia"]
    assert not [one for one in others if "runtimeClassName" in pod_template(one)["spec"]]
    assert not [one for one in others if "nvidia.com/gpu" in container(one)["resources"]["limits"]]


@pytest.mark.parametrize("resource", ["nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"])
def test_parts_of_gpus(resource: str) -> None:
    values = values_of(None)
    values["gpu"] = {"count": 1, "resource": resource, "nodeSelector": {}}
    check(values)
    (deployment,) = [one for one in rendered(values) if one["kind"] == "Deployment"]
    (made,) = deployment["spec"]["template"]["spec"]["containers"]
    assert made["resources"]["limits"] == {"memory": "16Gi", resource: "1"}
    assert core_problems(deployment, VERSIONS[-1]) == []


def test_keys_are_those_that_the_server_reads() -> None:
    (secret,) = of_kind("ascend", "Secret")
    keys, short = parse(Path("keys.yaml"), secret["stringData"]["keys.yaml"].encode())
    assert ([key.name for key in keys], short) == (["team-a", "operations"], [])
    (volume,) = [one for one in pod_template("ascend")["spec"]["volumes"] if one["name"] == "keys"]
    assert volume["secret"]["defaultMode"] & 0o022 == 0, "the server refuses a file that others may write"


@pytest.mark.parametrize("values", ["hpa", "keda"])
def test_who_scales_owns_the_number_of_replicas(values: str) -> None:
    (deployment,) = of_kind(values, "Deployment")
    (scaler,) = of_kind(values, "HorizontalPodAutoscaler") + of_kind(values, "ScaledObject")
    assert "replicas" not in deployment["spec"]
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "msx_requests_queued" in yaml.dump(scaler)
    assert "| `msx_requests_queued` | gauge |" in (DEPLOY.parent / "docs" / "metrics.md").read_text()


def test_what_prometheus_asks_for() -> None:
    (monitor,), (scaler,) = of_kind("keda", "ServiceMonitor"), of_kind("keda", "ScaledObject")
    selector = monitor["spec"]["selector"]["matchLabels"].items()
    found = [one for one in of_kind("keda", "Service") if selector <= one["metadata"]["labels"].items()]
    (service,) = found
    assert monitor["spec"]["endpoints"][0]["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "msx-serve", "as the alerts name it"
    query = scaler["spec"]["triggers"][0]["metadata"]["query"]
    assert f'namespace="{NAMESPACE}",service="{service["metadata"]["name"]}"' in query


def test_the_alerts_are_those_of_prometheus() -> None:
    """A chart has its files in itself: after a change, copy deploy/prometheus/alerts.yaml into files/."""
    (rule,) = of_kind("keda", "PrometheusRule")
    text = (DEPLOY / "prometheus" / "alerts.yaml").read_text()
    assert (CHART / "files" / "alerts.yaml").read_text() == text
    assert rule["spec"] == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"autoscaling": {"hpa": {"enabled": True}, "keda": {"enabled": True}}}, "autoscaling"),
        ({"npu": {"count": 1}, "gpu": {"count": 1}}, ""),
        ({"gpu": {"count": 1, "resource": "gpu"}}, "gpu"),
        ({"runtimeClassName": "No Name"}, "runtimeClassName"),
        ({"config": {"state_dir": "/elsewhere"}}, "config"),
        ({"config": {"job_queue_size": [1]}}, "config"),
        ({"replica": 3}, ""),
        ({"models": []}, "models"),
        ({"ports": {"http": 80}}, "ports"),
        ({"state": {"kind": "hostPath"}}, "state"),
    ],
)
def test_the_schema_refuses(values: dict[str, Any], place: str) -> None:
    with pytest.raises(jsonschema.ValidationError) as refused:
        check(values)
    assert next(iter(refused.value.absolute_path), "") == place


def test_every_value_is_explained_and_in_the_schema() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())["properties"].keys()
    assert values_of(None).keys() == schema - {"global"}
    assert [block for block in "\n".join(lines).split("\n\n")[1:] if "#" not in block] == []


def test_the_subset_is_that_of_the_readme() -> None:
    line = next(one for one in (CHART / "README.md").read_text().splitlines() if one.startswith("| functions |"))
    named = {word.strip(" `") for word in line.split("|")[2].split(",")}
    assert named == {*(name for name in FUNCTIONS if name != "Files.Get"), ".Files.Get", "include"}


@every_values
def test_the_notes(values: str) -> None:
    text = notes(values_of(VALUES[values]))
    assert f"{RELEASE} in the namespace {NAMESPACE}" in text
    assert ("No keys are given" in text) == (values not in ("ascend", "keda"))
