"""One folder that a server writes: a model store that is read-only, shared, or just not to be touched."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.confined import confined
from tests.e2e.server import FREE_PORTS, client_of, new_store, pack_service, run_server

pytestmark = pytest.mark.e2e

PROGRAM = [sys.executable, "-m", "msx_frontend.cli.main"]


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def public() -> Iterator[Path]:
    """Folders of pytest can be entered by its own user only."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def state(public: Path) -> Iterator[Path]:
    """The process that still has it at the end is killed."""
    folder = public / "state"
    folder.mkdir()
    yield folder
    with contextlib.suppress(FileNotFoundError, psutil.NoSuchProcess):
        psutil.Process(json.loads((folder / "server.json").read_text())["pid"]).kill()


@pytest.mark.parametrize("home", ["/", None])
def test_the_user_nobody_with_one_writable_folder(public: Path, state: Path, home: str | None) -> None:
    store = new_store(public)
    pack_service("echo", store)
    elsewhere = pack_service("echo", public, model="elsewhere")
    (public / "config.properties").write_text(FREE_PORTS)
    before = listing(store)
    env = {"MSX_STATE_DIR": str(state), **({"HOME": home} if home else {})}
    flags = ["--models", "all", "--model-store", str(store), "--ts-config", str(public / "config.properties")]
    command = [*confined(state), *PROGRAM, "--start", "--wait", "--enable-model-api", *flags]
    started = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert started.returncode == 0, started
    for heading, place in {"state": "state.db", "tokens": "key_file.json", "log files": "logs"}.items():
        assert f"  {heading:<10}  {state / place}\n" in started.stdout

    info, keys = (json.loads((state / name).read_text()) for name in ("server.json", "key_file.json"))
    with client_of(info["inference"], keys["inference"]["key"]) as client:
        assert client.post("/predictions/echo", content=b"hello").content == b"hello"
    with client_of(info["management"], keys["management"]["key"]) as client:
        url = f"file://{elsewhere}"
        registered = client.post("/models", params={"url": url, "initial_workers": 1, "synchronous": True})
        assert registered.status_code == 200, registered.text
        assert (state / "archives" / elsewhere.name).exists()

    stopped = subprocess.run(
        [*PROGRAM, "--stop", "--state-dir", str(state)], capture_output=True, timeout=60, check=False
    )
    assert stopped.returncode == 0, stopped
    assert listing(store) == before
    assert not {"key_file.json", "server.json", "run"} & {path.name for path in state.iterdir()}
    assert (state / "logs" / "ts_log.log").exists()
    assert list((state / "logs" / "config").iterdir()), "snapshots"


def test_without_a_folder_for_it_the_start_says_how_to_name_one(public: Path, state: Path) -> None:
    store = new_store(public)
    for mode in ("--start", "--foreground"):
        command = [*confined(state), *PROGRAM, mode, "--model-store", str(store)]
        refused = subprocess.run(command, env={}, capture_output=True, text=True, timeout=60, check=False)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr == (
            f"The model store {store} cannot be written: Read-only file system. The server keeps its state in "
            f"{store}/.msx: name a folder for it (--state-dir, state_dir in config.properties, or MSX_STATE_DIR), or "
            "keep none (--ncs).\n"
        )


def test_two_servers_share_a_model_store(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    pack_service("echo", store)
    before = listing(store)
    (tmp_path / "pid").mkdir()
    flags = [("--models", "echo.mar", "--state-dir", str(tmp_path / name)) for name in ("one", "two")]
    with run_server(tmp_path, *flags[0], env={"TMPDIR": str(tmp_path / "pid")}) as one:
        with run_server(tmp_path, *flags[1]) as two:
            assert one.predict("echo", b"1").content == two.predict("echo", b"1").content == b"1"
            assert one.state != two.state
            command = [*PROGRAM, "--foreground", "--model-store", str(store), *flags[0]]
            third = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
            assert third.returncode == 1
            assert f"already running with the state folder {one.state} (pid {one.process.pid}," in third.stderr
        assert one.predict("echo", b"1").content == b"1"
    assert listing(store) == before
