"""deploy/kuberay: the Ray cluster, and the values of the server that uses it, fit each other."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import pytest
import yaml

from msx_frontend.devices.choose import KNOWN
from msx_ray.agent.node_cache import CACHE
from tests.deploy.chart import DEPLOY, VALUES, rendered, values_of
from tests.deploy.custom_resources import problems

CLUSTER = yaml.safe_load((DEPLOY / "kuberay" / "raycluster.yaml").read_text())
SPEC, NAME = CLUSTER["spec"], CLUSTER["metadata"]["name"]
HEAD, (NPUS, GPUS) = SPEC["headGroupSpec"], SPEC["workerGroupSpecs"]


def container(group: dict[str, Any]) -> dict[str, Any]:
    (found,) = group["template"]["spec"]["containers"]
    made: dict[str, Any] = found
    return made


@pytest.mark.parametrize("kubernetes", ["1.25", "1.37"])
def test_it_is_valid(kubernetes: str) -> None:
    assert problems(CLUSTER, kubernetes) == []


def test_ray_is_the_one_that_is_installed() -> None:
    """Frontend and nodes need the same; the driver checks it."""
    assert SPEC["rayVersion"].split(".")[:2] == version("ray").split(".")[:2]
    assert container(HEAD)["image"] == container(NPUS)["image"] == container(GPUS)["image"]
    image = values_of(VALUES["groups"])["image"]
    assert container(HEAD)["image"] == f"{image['repository']}:{image['tag']}"


def test_ray_has_as_many_npus_as_the_pod() -> None:
    resources = json.loads(json.loads(NPUS["rayStartParams"]["resources"]))
    limits = container(NPUS)["resources"]["limits"]
    assert resources == {"NPU": int(limits["huawei.com/Ascend910"])}
    assert HEAD["rayStartParams"]["num-cpus"] == "0", "nothing is placed on the head"


def test_ray_has_as_many_gpus_as_the_pod() -> None:
    """Ray takes no `GPU` among its resources; it has an option of its own."""
    resources = container(GPUS)["resources"]
    assert resources["requests"]["nvidia.com/gpu"] == resources["limits"]["nvidia.com/gpu"] == "8"
    assert GPUS["rayStartParams"] == {"num-gpus": "8"}
    (toleration,) = GPUS["template"]["spec"]["tolerations"]
    assert toleration == {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def test_each_group_has_devices_of_one_kind_and_one_has_pods() -> None:
    named = [{name for name in container(one)["resources"]["limits"] if "/" in name} for one in (HEAD, NPUS, GPUS)]
    assert named == [set(), {"huawei.com/Ascend910"}, {"nvidia.com/gpu"}]
    assert [one["replicas"] for one in (NPUS, GPUS)] == [2, 0]
    assert NPUS["maxReplicas"] == GPUS["maxReplicas"], "as many as the comment says to take over"


@pytest.mark.parametrize("group", [HEAD, NPUS, GPUS], ids=["head", "npus", "gpus"])
def test_a_pod(group: dict[str, Any]) -> None:
    own = container(group)
    for kind in KNOWN:
        assert {"name": f"RAY_EXPERIMENTAL_NOSET_{kind.visible}", "value": "1"} in own["env"]
    assert own["command"][0] == "/usr/local/bin/entrypoint.sh", "it sets CANN's variables"
    assert "$KUBERAY_GEN_RAY_START_CMD" in own["command"][-1]
    assert own["securityContext"]["readOnlyRootFilesystem"] is True
    assert group["template"]["spec"]["securityContext"]["runAsUser"] == 1000
    env = {one["name"]: one["value"] for one in own["env"]}
    assert {env[CACHE], env["HOME"]} <= {one["mountPath"] for one in own["volumeMounts"]}
    volumes = {one["name"] for one in group["template"]["spec"]["volumes"]}
    assert {one["name"] for one in own["volumeMounts"]} == volumes


def test_the_server_finds_the_cluster_and_has_its_token() -> None:
    values = values_of(VALUES["groups"])
    ports = {port["name"]: port["containerPort"] for port in container(HEAD)["ports"]}
    assert values["ray"]["address"] == f"ray://{NAME}-head-svc:{ports['client']}"
    assert SPEC["authOptions"] == {"mode": "token"}
    (deployment,) = [one for one in rendered(values) if one["kind"] == "Deployment"]
    env = {one["name"]: one for one in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["RAY_AUTH_MODE"]["value"] == "token"
    assert env["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": NAME, "key": "auth_token"}


def test_agents_reach_the_server() -> None:
    (policy,) = [one for one in rendered(values_of(VALUES["groups"])) if one["kind"] == "NetworkPolicy"]
    label = {"podSelector": {"matchLabels": {"ray.io/cluster": NAME}}}
    assert {"from": [label]} in policy["spec"]["ingress"]
