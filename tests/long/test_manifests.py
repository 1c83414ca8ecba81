"""deploy/ against the projects' own code: Helm renders the chart, KServe's classes have the members that are used."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.chart import CHART, NAMESPACE, RELEASE, VALUES, notes, rendered, values_of
from tests.deploy.custom_resources import SPECS
from tests.long.environments import environment

pytestmark = [pytest.mark.contract, pytest.mark.long]

RENDER = Path(__file__).parent / "clients" / "render_chart.py"
KSERVE = "kserve==0.21.0"


@pytest.fixture(scope="module")
def python() -> str:
    return environment("helm")


@pytest.mark.parametrize("values", VALUES)
def test_helm_makes_the_same(values: str, python: str) -> None:
    file = VALUES[values]
    own = yaml.safe_load(file.read_text()) if file else {}
    command = [python, str(RENDER), str(CHART), RELEASE, NAMESPACE]
    done = subprocess.run(command, input=json.dumps(own), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    made = answer["manifests"]
    assert answer["errors"] == []
    assert made[f"{CHART.name}/templates/NOTES.txt"].strip() == notes(values_of(file)).strip()
    theirs = [one for name in made if name.endswith(".yaml") for one in yaml.safe_load_all(made[name]) if one]
    assert _by_name(theirs) == _by_name(rendered(values_of(file)))


def _by_name(manifests: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    """Files in a Secret as what they say: YAML has several forms of one text."""
    for one in manifests:
        if one["kind"] == "Secret":
            one["stringData"] = {name: yaml.safe_load(text) for name, text in one["stringData"].items()}
    return {(one["kind"], one["metadata"]["name"]): one for one in manifests}


@pytest.fixture(scope="module")
def kserve(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """Its wheel alone: what it needs to run is large, and its classes are read, not run."""
    folder = tmp_path_factory.mktemp("kserve")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), KSERVE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.iterdir()
    return zipfile.Path(wheel, "kserve/models/")


def test_kserves_classes_have_the_members_of_our_tables(kserve: zipfile.Path) -> None:
    runtime = SPECS["serving.kserve.io/v1alpha1 ClusterServingRuntime"]
    service = SPECS["serving.kserve.io/v1beta1 InferenceService"]
    predictor = service["predictor"]
    for name, table in {
        "v1alpha1_serving_runtime_spec": runtime,
        "v1alpha1_supported_model_format": runtime["supportedModelFormats"][0],
        "v1beta1_inference_service_spec": service,
        "v1beta1_predictor_spec": predictor,
        "v1beta1_model_spec": predictor["model"],
        "v1beta1_model_format": predictor["model"]["modelFormat"],
    }.items():
        source = (kserve / f"{name}.py").read_text()
        members = re.search(r"attribute_map = \{(.*?)\}", source, re.DOTALL)
        assert members is not None
        assert table.keys() <= set(re.findall(r": '(\w+)'", members[1])), name
