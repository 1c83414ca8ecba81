"""Workers as users of their own: what they can read, and what not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import new_store, pack_service, run_server, wait_until
from tests.interpreters import stub_interpreter
from tests.other_user import UID, needs_root, open_folder, others_python

pytestmark = [pytest.mark.e2e, needs_root]


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


def test_each_archive_has_a_user_of_its_own(folder: Path) -> None:
    python, env = others_python()
    store = new_store(folder)
    pack_service("rights", store, model="one")
    pack_service("rights", store, model="two", version="2.0")
    properties = f"python={python}\nworker_user={UID}-{UID + 1}\nworker_groups=12345\nworker_limits=nofile=512,core=0\n"
    (closed_folder := folder / "closed").mkdir(mode=0o700)
    properties += f"pythons=other={python},closed={stub_interpreter(closed_folder / 'python')}\n"
    with run_server(folder, "--models", "one.mar", "two.mar", properties=properties, tokens=True, env=env) as server:
        state, pid = server.state, server.info["pid"]
        first = ask(server, "one", [])
        secrets = [server.info["key_file"], state / "state.db", state / "status.sock", f"/proc/{pid}/environ"]
        closed = [*map(str, secrets), str(state), str(state / "run"), str(state / "models"), first["model_dir"]]
        closed += [str(folder / "logs" / name) for name in ("access_log.log", "ts_log.log", "model_log.log")]
        closed += [first["cwd"], first["home"], str(state / "compiled" / Path(first["model_dir"]).name)]
        second = ask(server, "two", [*closed, (own := "rights.py")])
        assert second["readable"] == {**dict.fromkeys(closed, False), own: True}
        assert not any(second["writable"].values())
        assert {first["uids"][0], second["uids"][0]} == {UID, UID + 1}
        for one in (first, second):
            uid = one["uids"][0]
            assert (one["uids"], one["gids"], one["groups"]) == ([uid] * 3, [uid] * 3, [12345])
            assert (one["no_new_privileges"], one["capabilities"], one["nofile"]) == (1, 0, [512, 512])
            assert one["cache_written"] is one["home_written"] is True
            assert Path(one["home"]).parent == Path(one["temp"]).parent.parent == Path(one["cwd"])
        pack_service("rights", store, model="three", version="3.0", config="python: other\n")
        reply = server.register(Path("three.mar"))
        assert (reply.status_code, "all 2 of worker_user (61234-61235) are taken" in reply.text) == (500, True), reply
        server.kill_worker(server.worker_pids("one")[0], "one")
        assert ask(server, "one", [])["uids"] == first["uids"]
        assert server.management.delete("/models/two").status_code == 200
        assert server.register(Path("three.mar")).status_code == 200
        assert ask(server, "three", [])["uids"] == second["uids"]
        pack_service("rights", store, model="four", config="python: closed\n")
        reply = server.register(Path("four.mar"))
        assert (
            f"python: closed ({closed_folder}/python) ended with an error when it was checked: "
            in reply.json()["message"]
        )
        assert f"cannot be run as user {UID}: Permission denied" in reply.json()["message"]


def test_limits_without_a_user(folder: Path) -> None:
    pack_service("rights", new_store(folder), model="one")
    properties = "worker_limits=nofile=300\nworker_no_new_privileges=true\n"
    with run_server(folder, "--models", "one.mar", properties=properties) as server:
        told = ask(server, "one", [])
        assert (told["nofile"], told["no_new_privileges"], told["uids"]) == ([300, 300], 1, [0, 0, 0])
        wait_until(lambda: "said to /dev/stdout" in server.log.read_text(), "its line is there", server.tail)


def ask(server: Any, model: str, paths: list[str]) -> dict[str, Any]:
    reply = server.predict(model, {"paths": paths})
    assert reply.status_code == 200, reply.text + server.tail()
    told: dict[str, Any] = reply.json()
    return told
