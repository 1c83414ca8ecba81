"""The files that TorchServe writes, and what a start makes of them.

contract#snapshots
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.config.properties import parse_properties
from tests.contract.torchserve.setup import Setup, serving
from tests.e2e.server import RunningServer, pack_service, wait_until

pytestmark = pytest.mark.e2e

ECHO = Setup(services=("echo",), load=("echo.mar",))
NAME = re.compile(r"\d{17}-(startup|snapshot|shutdown)\.cfg")


def snapshots(folder: Path) -> list[Path]:
    return sorted((folder / "logs" / "config").glob("*.cfg"))


def models_of(path: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(parse_properties(path.read_text())["model_snapshot"])
    return said


def taken(server: RunningServer, number: int) -> None:
    wait_until(lambda: len(snapshots(server.folder)) >= number, f"{number} snapshots are there", server.tail)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a server that is gone: it was started, changed in every way, and stopped."""
    folder = tmp_path_factory.mktemp("s18")
    with serving(ECHO, folder) as server:
        pack_service("echo", server.store, version="2.0", model="next")
        taken(server, 1)
        server.register(Path("next.mar"), model_name="echo", batch_size=4, max_batch_delay=50)
        taken(server, 2)
        server.management.put("/models/echo/2.0/set-default")
        taken(server, 3)
        server.management.put("/models/echo/1.0?min_worker=2&max_worker=3&synchronous=true")
        taken(server, 4)
        server.management.delete("/models/echo/1.0")
        taken(server, 5)
    return folder


def test_one_at_the_start_one_a_change_one_at_the_stop(first: Path) -> None:
    names = [path.name for path in snapshots(first)]
    assert all(NAME.fullmatch(name) for name in names)
    kinds = [name.partition("-")[2] for name in names]
    assert kinds == ["startup.cfg", *["snapshot.cfg"] * 4, "shutdown.cfg"]


def test_the_members_of_a_model(first: Path) -> None:
    said = models_of(snapshots(first)[1])
    assert list(said) == ["name", "modelCount", "created", "models"]
    assert said["name"] == snapshots(first)[1].name
    assert said["modelCount"] == 2
    expected = {
        "defaultVersion": False,
        "marName": "next.mar",
        "minWorkers": 1,
        "maxWorkers": 1,
        "batchSize": 4,
        "maxBatchDelay": 50,
        "responseTimeout": 120,
        "startupTimeout": 120,
        "runtimeType": "python",
    }
    assert said["models"]["echo"]["2.0"] == expected
    assert list(said["models"]["echo"]["2.0"]) == list(expected)


def test_each_change_is_in_its_snapshot(first: Path) -> None:
    _, _, default, scaled, gone, last = (models_of(path)["models"]["echo"] for path in snapshots(first))
    assert default["2.0"]["defaultVersion"] is True
    assert (scaled["1.0"]["minWorkers"], scaled["1.0"]["maxWorkers"]) == (2, 3)
    assert set(gone) == {"2.0"}
    assert last == gone


def test_javas_escapes(first: Path) -> None:
    """TorchServe's tools change the line of `model_snapshot` as text."""
    text = snapshots(first)[0].read_text()
    comment, date, *lines = text.splitlines()
    assert comment == "#Saving snapshot"
    assert re.fullmatch(r"#\w{3} \w{3} \d\d \d\d:\d\d:\d\d \S+ \d{4}", date)
    [line] = [line for line in lines if line.startswith("model_snapshot=")]
    assert line.startswith(r'model_snapshot={\n  "name"\: "')
    assert r'"runtimeType"\: "python"' in line
    assert r"inference_address=http\://127.0.0.1\:0" in lines


def start_from(first: Path, folder: Path, snapshot: Path, **options: Any) -> Any:
    """A server that has nothing of the first one but its store and a snapshot, given by --ts-config."""
    shutil.copytree(first / "store", folder / "store", ignore=shutil.ignore_patterns(".msx"))
    text = snapshot.read_text().replace(str(first).replace(":", r"\:"), str(folder))
    return serving(Setup(properties=text, **options), folder)


def test_a_snapshot_given_as_the_configuration(first: Path, tmp_path: Path) -> None:
    with start_from(first, tmp_path, snapshots(first)[3]) as server:
        described = {version["modelVersion"]: version for version in server.versions("echo")}
        assert (described["1.0"]["minWorkers"], described["1.0"]["maxWorkers"]) == (2, 3)
        assert (described["2.0"]["batchSize"], described["2.0"]["maxBatchDelay"]) == (4, 50)
        assert server.describe("echo")["modelVersion"] == "2.0"
        assert server.predict("echo", b"again").content == b"again"


def test_a_missing_runtime_type_means_python(first: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "without.cfg"
    snapshot.write_text(snapshots(first)[0].read_text().replace(r',\n        "runtimeType"\: "python"', ""))
    assert "runtimeType" not in snapshot.read_text()
    with start_from(first, tmp_path / "server", snapshot) as server:
        assert server.describe("echo")["runtime"] == "python"


def test_an_archive_that_is_missing_fails_its_model_only(first: Path, tmp_path: Path) -> None:
    """TorchServe does not start then."""
    snapshot = tmp_path / "gone.cfg"
    snapshot.write_text(snapshots(first)[1].read_text().replace("next.mar", "gone.mar"))
    with start_from(first, tmp_path / "server", snapshot, ready=False) as server:
        lost = server.describe("echo", "2.0")
        assert (lost["state"], lost["minWorkers"], lost["workers"]) == ("FAILED", 1, [])
        assert "Model not found at: gone.mar" in lost["reason"]
        assert server.predict("echo/1.0", b"x").content == b"x"
        refused = server.predict("echo/2.0", b"x")
        assert (refused.status_code, "gone.mar" in refused.text) == (503, True)
        assert server.management.delete("/models/echo/2.0").status_code == 200


def test_a_dummy_archive_does_not_stop_the_start(first: Path, tmp_path: Path) -> None:
    """Upstream's test_replace_mar_file_with_dummy; here the model says what is wrong with it."""
    with_dummy = tmp_path / "first"
    shutil.copytree(first, with_dummy)
    (with_dummy / "store" / "echo.mar").write_text("dummy")
    with start_from(with_dummy, tmp_path / "server", snapshots(with_dummy)[0], ready=False) as server:
        assert server.describe("echo")["state"] == "FAILED"
        assert "is not a model archive" in server.describe("echo")["reason"]


def test_ncs_writes_none(tmp_path: Path) -> None:
    with serving(Setup(services=("echo",), flags=("--ncs",)), tmp_path) as server:
        server.register(Path("echo.mar"))
    assert not (tmp_path / "logs" / "config").exists()


def test_log_location(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with serving(Setup(env={"LOG_LOCATION": str(elsewhere)}), tmp_path) as server:
        wait_until(lambda: list((elsewhere / "config").glob("*-startup.cfg")), "it is there", server.tail)
    assert len(list((elsewhere / "config").iterdir())) == 2


def test_a_read_only_snapshot(first: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "read-only.cfg"
    shutil.copy(snapshots(first)[0], snapshot)
    snapshot.chmod(0o400)
    with start_from(first, tmp_path / "server", snapshot) as server:
        assert server.predict("echo", b"x").content == b"x"
