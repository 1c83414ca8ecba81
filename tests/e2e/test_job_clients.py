"""Jobs of a real server as clients, operators and receivers of callbacks meet them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from msx_client import AsyncClient, Client, DeadlineError, MsxError, NotFoundError, NotServedError, RequestError
from msx_frontend.cli.main import main
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, start_server, wait_until
from tests.frontend.deferred.callbacks.receiver import SECRET, Receiver, receiver

pytestmark = pytest.mark.e2e

HELLO = [{"role": "user", "content": "one two three"}]
SLOW = [{"role": "user", "content": "hang here"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("jobs")
    pack_service("parrot", new_store(folder), config="maxConcurrent: 64\njobQueueSize: 100")
    with run_server(folder, "--models", "parrot.mar", properties=properties(folder), tokens=True) as running:
        yield running


def properties(folder: Path) -> str:
    secrets = folder / "secrets"
    secrets.write_text(f"{SECRET}\n")
    secrets.chmod(0o600)
    return f"jobs=true\njobs_at_once=8\ncallback_hosts=127.0.0.0/8\ncallback_secrets={secrets}\n"


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def client_of(server: RunningServer) -> Client:
    info = server.info
    return Client(info["inference"], management_url=info["management"], key_file=info["key_file"])


def test_a_client_submits_waits_streams_and_cancels(server: RunningServer) -> None:
    with client_of(server) as client:
        job = client.jobs.chat("parrot", HELLO)
        assert job.result(60).content == client.chat("parrot", HELLO).content
        assert (job.status()["state"], job.wait()["status"]) == ("done", 200)
        assert client.jobs.generate("parrot", "one two").result(60).text == client.generate("parrot", "one two").text
        streamed = client.jobs.chat("parrot", HELLO, stream=True)
        assert "".join(piece.text for piece in streamed.stream()) == job.result().content
        hanging = client.jobs.chat("parrot", SLOW)
        with pytest.raises(DeadlineError, match=f"the job {hanging.id} is"):
            hanging.wait(0.2)
        assert hanging.cancel() == "cancelled"
        with pytest.raises(MsxError, match="The job was cancelled") as gone:
            hanging.result(60)
        assert gone.value.status == 410
        assert job.cancel() == "forgotten"
        with pytest.raises(NotFoundError):
            job.status()
        refused = client.jobs.chat("parrot", [])
        with pytest.raises(RequestError):
            refused.result(60)
        again = client.jobs.generate("parrot", "once", idempotency_key="k")
        assert client.jobs.generate("parrot", "once", idempotency_key="k").id == again.id
        assert again.id in [one["id"] for one in client.jobs.list()]


def test_a_client_on_a_loop(server: RunningServer) -> None:
    async def test() -> None:
        async with AsyncClient(server.info["inference"], key_file=server.info["key_file"]) as client:
            job = await client.jobs.chat("parrot", HELLO, stream=True)
            assert "".join([piece.text async for piece in job.stream()])
            assert (await job.wait(60))["state"] == "done"
            assert (await (await client.jobs.chat("parrot", HELLO)).result(60)).content
            assert job.id in [one["id"] async for one in client.jobs.list(state="done")]
            assert await job.cancel() == "forgotten"

    asyncio.run(test())


def test_grpc_has_no_jobs() -> None:
    with Client("grpc://127.0.0.1:1") as client, pytest.raises(NotServedError, match="over HTTP"):
        client.jobs.chat("parrot", HELLO)


def test_a_receiver_is_told(server: RunningServer, hook: Receiver) -> None:
    hook.statuses = [500, 200]
    with client_of(server) as client:
        job = client.jobs.chat("parrot", HELLO, callback=hook.url)
        wait_until(lambda: hook.got, "the callback came", server.tail)
        _, headers, body = hook.got[0]
        told = json.loads(body)
        assert (told["type"], told["data"]["id"], told["data"]["status"]) == ("job.completed", job.id, 200)
        assert headers["webhook-signature"] == signature(headers, body)
        assert server.inference.get(told["data"]["result"]).status_code == 200
        wait_until(lambda: len(hook.got) == 2, "the callback came again", server.tail)
        assert hook.got[1].headers["webhook-id"] == headers["webhook-id"]
        wait_until(lambda: job.status()["callback"]["state"] == "delivered", "it is delivered", server.tail)
        wait_until(lambda: server.metric("msx_callbacks_total", result="delivered") >= 1, "it is counted", server.tail)
        with pytest.raises(RequestError, match=r"hooks\.example is not in callback_hosts"):
            client.jobs.chat("parrot", HELLO, callback="https://hooks.example/")


def signature(headers: dict[str, str], body: bytes) -> str:
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.digest(base64.b64decode(SECRET.removeprefix("whsec_")), signed, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def test_a_callback_outlives_a_server_that_is_killed(tmp_path: Path, hook: Receiver) -> None:
    hook.statuses = [503]
    pack_service("parrot", new_store(tmp_path))
    first = start_server(tmp_path, "--models", "parrot.mar", properties=properties(tmp_path))
    first.wait_ready()
    headers = {"prefer": "respond-async", "x-msx-callback": hook.url}
    asked = first.inference.post("/v1/completions", json={"model": "parrot", "prompt": "a"}, headers=headers)
    assert asked.status_code == 202, asked.text
    wait_until(lambda: hook.got, "the callback came", first.tail)
    first.kill()
    first.close()
    hook.statuses = [200]
    with run_server(tmp_path, properties=properties(tmp_path)) as second:
        path = asked.headers["location"]

        def state() -> Any:
            return second.inference.get(path).json()["callback"]["state"]

        wait_until(lambda: state() == "delivered", "it is delivered", second.tail)
        assert len({one.headers["webhook-id"] for one in hook.got}) == 1


def run_words(server: RunningServer, *words: str) -> Result:
    return CliRunner().invoke(main, ["jobs", *words, "--state-dir", str(server.state)])


def test_the_words_of_operators(server: RunningServer) -> None:
    with client_of(server) as client:
        job, hanging = client.jobs.chat("parrot", HELLO), client.jobs.chat("parrot", SLOW)
        job.wait(60)
        listed = run_words(server, "list", "-n", "2")
        assert listed.exit_code == 0, listed.output
        lines = [line.split() for line in listed.stdout.splitlines()]
        assert lines[0] == ["id", "state", "status", "age", "key", "path"]
        assert [line[0] for line in lines[1:]] == [hanging.id, job.id]
        assert lines[2][1:3] == ["done", "200"]
        found = [json.loads(line) for line in run_words(server, "list", "--json").stdout.splitlines()]
        assert {job.id, hanging.id} <= {one["id"] for one in found}
        shown: dict[str, Any] = json.loads(run_words(server, "show", job.id).stdout)
        assert (shown["state"], shown["path"], shown["key"]) == ("done", "/v1/chat/completions", "")
        told = json.loads(run_words(server, "result", job.id, "--wait", "5").stdout)
        assert told["choices"][0]["message"]["content"] == job.result().content
        cancelled = run_words(server, "cancel", hanging.id, job.id)
        assert cancelled.stdout == f"{hanging.id}: cancelled\n{job.id}: forgotten\n"
        missing = run_words(server, "show", job.id)
        assert (missing.exit_code, "There is no job" in missing.output) == (1, True)
        early = client.jobs.chat("parrot", SLOW)
        refused = run_words(server, "result", early.id)
        assert (refused.exit_code, f"The job {early.id} has not ended." in refused.output) == (1, True)
        early.cancel()


def test_jobs_are_counted(server: RunningServer) -> None:
    with client_of(server) as client:

        def ended(state: str) -> float:
            return server.metric("msx_jobs_ended_total", state=state)

        done, failed = ended("done"), ended("failed")
        client.jobs.generate("parrot", "one").wait(60)
        wait_until(lambda: ended("done") == done + 1, "one is done", server.tail)
        client.jobs.chat("parrot", []).wait(60)
        wait_until(lambda: ended("failed") == failed + 1, "one has failed", server.tail)
        hanging = client.jobs.chat("parrot", SLOW)
        wait_until(lambda: server.metric("msx_jobs", state="running") == 1, "it runs", server.tail)
        assert server.metric("msx_jobs_oldest_seconds") > 0
        hanging.cancel()
        assert server.metric("msx_store_bytes") > 4096
