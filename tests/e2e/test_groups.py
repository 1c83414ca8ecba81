"""Groups of several ranks: who gets what, in which order, and what an operator sees of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from msx_archiver.errors import PackError
from tests.e2e.groups import INFORMED, LAYOUTS, RANKS, Recorder, ask, header, long_but, ranks, scale
from tests.e2e.server import SERVICES, RunningServer, client_of, new_store, pack_service, run_server, wait_until
from tests.processes import alive

pytestmark = pytest.mark.e2e

GROUPS = ["tp2", "pp2", "pptp4"]
BATCHES = "batchSize: 4\nmaxBatchDelay: 20\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    new_store(tmp_path)
    with run_server(tmp_path, properties="max_request_size=20000000\n") as running:
        yield running


def serve(server: RunningServer, layout: str, config: str = "") -> Recorder:
    recorder = Recorder(server.folder, layout, config)
    reply = server.register(recorder.archive)
    assert reply.status_code == 200, reply.text
    return recorder


def without(lines: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Lines that must be equal on all ranks: not the first line, its environment, nor members of these names.

    The group must have ended: until then other ranks may be behind rank 0.
    """
    return [{name: value for name, value in line.items() if name not in names} for line in lines[1:]]


def assert_in_step(recorder: Recorder) -> None:
    first, *others = [without(lines, "fields") for lines in recorder.of_all()]
    for other in others:
        assert other == first


def unregister(server: RunningServer, model: str) -> None:
    assert server.management.delete(f"/models/{model}").status_code == 200


# -- who gets what --


@pytest.mark.parametrize("layout", long_but(LAYOUTS, "pptp4", "custom"))
def test_inputs(server: RunningServer, layout: str) -> None:
    """The ranks of the first stage get them, the others as many empty rows; in warm-up too."""
    recorder = serve(server, layout)
    assert ask(server, layout, b"12345")[0] == 200
    unregister(server, layout)
    for rank, lines in enumerate(recorder.of_all()):
        seen = [line["fields"] for line in lines if "call" in line]
        assert seen == ([[{"body": 4}], [{"body": 5}]] if rank < INFORMED[layout] else [[{}], [{}]])
    assert_in_step(recorder)


def test_a_large_input_reaches_every_rank(server: RunningServer) -> None:
    recorder = serve(server, "pptp4", "batchSize: 2\n")
    body = b"x" * 10_000_000
    with ThreadPoolExecutor(4) as clients:
        assert {status for status, _ in clients.map(lambda _: ask(server, "pptp4", body), range(4))} == {200}
    unregister(server, "pptp4")
    for rank, lines in enumerate(recorder.of_all()):
        calls = [row for line in lines[2:] if "call" in line for row in line["fields"]]
        assert calls == [{"body": 10_000_000} if rank < 2 else {}] * 4


@pytest.mark.parametrize("layout", long_but(LAYOUTS, "pptp4", "custom"))
def test_environment(server: RunningServer, layout: str) -> None:
    recorder, number = serve(server, layout, "deviceType: cpu\n"), RANKS[layout]
    ports = set()
    for rank, lines in enumerate(recorder.of_all()):
        env, mine, size = lines[0]["env"], str(rank), str(number)
        ports.add(env.pop("MASTER_PORT", None))
        assert env.pop("MASTER_ADDR", None) == ("127.0.0.1" if number > 1 else None)
        env.pop("OMP_NUM_THREADS", None)
        torchrun = {"RANK": mine, "LOCAL_RANK": mine, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
        assert env == {
            **({} if layout == "custom" else torchrun),
            "RANK_ID": mine,
            "RANK_SIZE": size,
            "DEVICE_ID": mine,
        }
        assert (lines[0]["world"], lines[0]["local"], lines[0]["device"]) == (number, rank, None)
    assert len(ports) == 1


def test_threads_of_a_rank(server: RunningServer) -> None:
    recorder = Recorder(server.folder, "tp2")
    config = f"parallelType: tp\ntorchrun: {{nproc-per-node: 2, OMP_NUMBER_THREADS: 3}}\nfolder: {recorder.records}\n"
    archive = pack_service("parallel_record", server.store, model="tp2", config=config)
    assert server.register(archive).status_code == 200
    assert [lines[0]["env"]["OMP_NUM_THREADS"] for lines in recorder.of_all()] == ["3", "3"]


def test_only_rank_0_answers(server: RunningServer) -> None:
    recorder = serve(server, "tp2")
    assert ask(server, "tp2", steps=3) == (200, "1 of 0\n2 of 0\n3 of 0\n")
    assert ask(server, "tp2")[1].endswith(" of 0")
    unregister(server, "tp2")
    steps = [[line["step"] for line in lines if "step" in line] for lines in recorder.of_all()]
    assert steps == [[1, 2, 3], [1, 2, 3]]


# -- in step --


def test_a_bad_request_of_a_batch_fails_alone(server: RunningServer) -> None:
    """Rank 0 leads the others through the batch, and through each of its requests when it failed."""
    recorder = serve(server, "pptp4", "batchSize: 3\nmaxBatchDelay: 20000\nbatchingPolicy: fixed\n")
    with ThreadPoolExecutor(3) as clients:
        orders: list[dict[str, Any]] = [{}, {"bad": True}, {}]
        answers = list(clients.map(lambda order: ask(server, "pptp4", **order), orders))
    assert sorted(status for status, _ in answers) == [200, 200, 503]
    assert answers[1] == (503, "Prediction failed: ValueError: a bad request")
    assert ranks(server, "pptp4")[0]["state"] == "READY"
    assert server.describe("pptp4")["workers"][0]["generation"] == 1
    unregister(server, "pptp4")
    assert [len(line["call"]) for line in recorder.of_rank(3) if "call" in line] == [1, 3, 1, 1, 1]
    assert_in_step(recorder)


def test_a_cancelled_stream_ends_at_the_same_step_everywhere(server: RunningServer) -> None:
    recorder = serve(server, "tp2")
    with client_of(server.info["inference"], None) as client:
        order = header(steps=50, gates=recorder.gates)
        recorder.open(1)
        with client.stream("POST", "/predictions/tp2", content=b"x", headers=order) as reply:
            assert next(reply.iter_text()) == "1 of 0\n"
    for step in range(2, 51):
        recorder.open(step)
        wait_until(lambda: recorder.of_rank(0)[-1].get("step") == step or ended(recorder), "the step is taken")  # noqa: B023
        if ended(recorder):
            break
    recorder.wait_for(closed=[0])
    assert ask(server, "tp2")[0] == 200
    unregister(server, "tp2")
    assert_in_step(recorder)
    assert max(line.get("step", 0) for line in recorder.of_rank(0)) < 50


def ended(recorder: Recorder) -> bool:
    return "closed" in recorder.of_rank(0)[-1]


@pytest.mark.parametrize(("layout", "seed"), long_but([("tp2", 1), ("pp2", 2), ("pptp4", 3)], ("tp2", 1)))
def test_a_random_schedule(server: RunningServer, layout: str, seed: int) -> None:
    """Calls, streams, bad requests and clients that leave, in batches: every rank has seen the same."""
    recorder = serve(server, layout, BATCHES)
    chances = random.Random(seed)
    with ThreadPoolExecutor(6) as clients:
        list(clients.map(lambda one: visit(server, layout, one), [chances.random() for _ in range(60)]))
    assert ask(server, layout)[0] == 200
    assert server.describe(layout)["workers"][0]["generation"] == 1
    unregister(server, layout)
    assert_in_step(recorder)
    assert recorder.of_rank(0)[-1] == {"end": True}
    assert any(len(line.get("call", [])) > 1 for line in recorder.of_rank(0))
    assert any(line.get("closed") or line.get("cancelled") for line in recorder.of_rank(0))


def visit(server: RunningServer, model: str, chance: float) -> None:
    with client_of(server.info["inference"], None) as client:
        if chance < 0.3:
            assert client.post(f"/predictions/{model}", content=b"x").status_code == 200
        elif chance < 0.4:
            assert client.post(f"/predictions/{model}", content=b"x", headers=header(bad=True)).status_code == 503
        else:
            order = header(steps=int(chance * 20), pause=0.01)
            with client.stream("POST", f"/predictions/{model}", content=b"x", headers=order) as reply:
                read_some(reply, chance)


def read_some(reply: httpx.Response, chance: float) -> None:
    for number, _ in enumerate(reply.iter_text()):
        if chance > 0.7 and number > chance * 4:
            return


# -- what an operator sees --


def test_describe_shows_each_rank_while_it_loads(server: RunningServer) -> None:
    hold = server.folder / "hold"
    recorder = Recorder(server.folder, "tp2", f"hold: {hold}\n")
    reply = server.management.post("/models", params={"url": recorder.archive.name, "initial_workers": 1, **LATER})
    assert reply.status_code == 202, reply.text
    wait_until(lambda: phases(server) == ["initializing", "initializing"], "both ranks initialize")
    Path(f"{hold}-1").touch()
    wait_until(lambda: [one["state"] for one in ranks(server, "tp2")] == ["LOADING", "READY"], "rank 1 is ready")
    assert server.describe("tp2")["workers"][0]["status"] == "LOADING"
    assert server.describe("tp2")["state"] == "LOADING"
    assert phases(server) == ["initializing", None]
    Path(f"{hold}-0").touch()
    server.wait_ready()
    shown = ranks(server, "tp2")
    assert [(one["rank"], one["state"]) for one in shown] == [(0, "READY"), (1, "READY")]
    assert len({one["pid"] for one in shown}) == 2
    assert all(one["memoryUsage"] > 1 << 20 for one in shown)
    assert server.metric("msx_worker_memory_bytes", model="tp2", rank="1") > 1 << 20


def test_it_is_ready_when_all_have_warmed_up(server: RunningServer) -> None:
    """A rank may compile for longer than rankSkewTimeout after the others."""
    hold = server.folder / "hold"
    recorder = Recorder(server.folder, "tp2", f"hold_calls: {hold}\nrankSkewTimeout: 0.1\n")
    reply = server.management.post("/models", params={"url": recorder.archive.name, "initial_workers": 1, **LATER})
    assert reply.status_code == 202, reply.text
    Path(f"{hold}-0").touch()
    wait_until(lambda: [one["state"] for one in ranks(server, "tp2")] == ["READY", "READY"], "rank 0 has warmed up")
    assert server.describe("tp2")["workers"][0]["status"] == "LOADING"
    Path(f"{hold}-1").touch()
    server.wait_ready()
    assert server.describe("tp2")["workers"][0]["generation"] == 1


LATER = {"synchronous": "false"}


def phases(server: RunningServer) -> list[Any]:
    return [one.get("phase") for one in ranks(server, "tp2")]


@pytest.mark.parametrize("layout", long_but(GROUPS, "pptp4"))
def test_an_async_handler_leads_by_itself(server: RunningServer, layout: str) -> None:
    model = serve_leading(server, layout)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: model({"steps": 5}), range(8)))
    assert [reply.text for reply in replies] == ["0;1;2;3;4;"] * 8
    unregister(server, "parallel_leads")  # the others are behind rank 0 until the group has ended
    first, *others = [(server.folder / f"rank-{rank}").read_text() for rank in range(RANKS[layout])]
    assert len(first.split()) == 40
    assert others == [first] * len(others)


@pytest.mark.parametrize(
    ("fails", "cause"),
    [
        (0, "Rank 0 failed while rank 1 did not: RuntimeError: no such step"),
        (1, "Rank 1 failed while rank 0 did not: RuntimeError: no such step"),
        ("all", "Prediction failed: RuntimeError: no such step"),
    ],
)
def test_a_rank_that_does_not_follow(server: RunningServer, fails: object, cause: str) -> None:
    model = serve_leading(server, "tp2")
    pid = ranks(server, "parallel_leads")[0]["pid"]
    reply = model({"steps": 1, "fails": fails})
    assert cause in reply.json()["message"]
    assert model({"steps": 2}).text == "0;1;"
    assert (ranks(server, "parallel_leads")[0]["pid"] == pid) == (fails == "all"), (
        "what all raise is not the fault of one rank"
    )


def serve_leading(server: RunningServer, layout: str) -> Callable[[dict[str, Any]], httpx.Response]:
    pack_service("parallel_leads", server.store, config=LAYOUTS[layout])
    reply = server.register(Path("parallel_leads.mar"))
    assert reply.status_code == 200, reply.text
    folder = str(server.folder)
    return lambda asked: server.inference.post("/predictions/parallel_leads", json={"folder": folder, **asked})


def test_an_async_handler_that_cannot_lead_is_refused(server: RunningServer) -> None:
    """When it is packed; and by the worker, of what another archiver has packed."""
    with pytest.raises(PackError, match="an async handler without follow"):
        pack_service("parallel_async", server.store, config=LAYOUTS["tp2"])
    folder = server.store / "parallel_async"
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "h.py").write_bytes((SERVICES / "parallel_async.py").read_bytes())
    (folder / "c.yaml").write_text(LAYOUTS["tp2"])
    model = {"modelName": "parallel_async", "handler": "h.py", "modelVersion": "1.0", "configFile": "c.yaml"}
    (folder / "MAR-INF" / "MANIFEST.json").write_text(json.dumps({"model": model}))
    reply = server.register(folder)
    assert reply.status_code == 500
    message = reply.json()["message"]
    assert "an async handler without follow(message) serves models of one rank, and this group has 2: make" in message
    assert server.management.get("/models/parallel_async").status_code == 404


# -- the end --


@pytest.mark.parametrize("way", long_but(["scale", "unregister", "stop"], "stop"))
def test_what_runs_may_finish_on_all_ranks(server: RunningServer, way: str) -> None:
    recorder = serve(server, "pptp4")
    processes = [psutil.Process(one["pid"]) for one in ranks(server, "pptp4")]
    with ThreadPoolExecutor(2) as pool:
        answer = pool.submit(ask, server, "pptp4", steps=2, gates=recorder.gates)
        recorder.open(1)
        recorder.wait_for(step=1)
        end = pool.submit(ENDINGS[way], server)
        wait_until(lambda: "DRAINING" in drain_signs(server) or way == "stop", "it drains")
        recorder.open(2)
        assert answer.result() == (200, "1 of 0\n2 of 0\n")
        end.result()
    recorder.wait_for(end=True)
    assert_in_step(recorder)
    wait_until(lambda: not alive(processes), "no rank is left")
    assert not [line for line in server.log_lines() if line.get("level") == "ERROR"]


def drain_signs(server: RunningServer) -> str:
    """UNLOADING is what describe calls a group that drains."""
    reply = server.management.get("/models/pptp4")
    return "DRAINING" if reply.status_code == 404 or '"UNLOADING"' in reply.text else ""


ENDINGS = {
    "scale": lambda server: scale(server, "pptp4", 0),
    "unregister": lambda server: unregister(server, "pptp4"),
    "stop": lambda server: server.terminate(),
}


def test_sigkill_of_the_server_leaves_no_rank(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "pptp4")
    with run_server(tmp_path) as server:
        assert server.register(recorder.archive).status_code == 200
        processes = [psutil.Process(one["pid"]) for one in ranks(server, "pptp4")]
        assert len(processes) == 4
        server.kill()
        wait_until(lambda: not alive(processes), "no rank is left")
        run = server.store / ".msx" / "run"
        assert run.exists(), "no process was there to remove it"
        for folder in sorted(run.rglob("*"), reverse=True):
            folder.rmdir() if folder.is_dir() and not folder.is_symlink() else folder.unlink()
        run.rmdir()
