"""A server started as the Helm chart starts it: its configuration, its keys, a model store that is read-only."""

from __future__ import annotations

import tempfile
from pathlib import Path

import httpx
import pytest

from tests.deploy.chart import rendered, values_of
from tests.e2e.containers import PORTS, replaced, running
from tests.e2e.server import new_store, pack_service

pytestmark = pytest.mark.e2e

KEYS = {"team": ("0123456789abcdef", "inference"), "operator": ("fedcba9876543210", "management")}


def test_the_chart_starts_a_server() -> None:
    values = values_of(None)
    values["keys"]["entries"] = [{"name": name, "key": key, "kind": kind} for name, (key, kind) in KEYS.items()]
    manifests = {one["kind"]: one for one in rendered(values)}
    (container,) = manifests["Deployment"]["spec"]["template"]["spec"]["containers"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # folders of pytest can be entered by its own user only
        store = new_store(folder)
        pack_service("echo", store)
        keys, config = folder / "keys.yaml", folder / "config.properties"
        keys.write_text(manifests["Secret"]["stringData"]["keys.yaml"])
        keys.chmod(0o444)
        places = {"/etc/msx/keys/keys.yaml": str(keys), "model_store=/models": f"model_store={store}", **PORTS}
        config.write_text(replaced(manifests["ConfigMap"]["data"]["config.properties"], places))
        before = sorted(store.rglob("*"))
        with running(container, folder, {"/etc/msx/config/config.properties": str(config)}) as info:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert httpx.get(info["inference"] + container[probe]["httpGet"]["path"]).status_code == 200
            asked = f"{info['inference']}/predictions/echo"
            assert httpx.post(asked, content=b"a").status_code == 400
            assert httpx.post(asked, content=b"a", headers=bearer("team")).content == b"a"
            listed = httpx.get(f"{info['management']}/models", headers=bearer("operator")).json()["models"]
            assert [one["modelName"] for one in listed] == ["echo"]
        assert sorted(store.rglob("*")) == before, "nothing is written beside the models"


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[name][0]}"}
