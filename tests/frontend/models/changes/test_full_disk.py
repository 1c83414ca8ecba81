"""A change that cannot be saved is not in force; one that is in force is there after a restart.

Every call of the management API, over REST and gRPC: one that is not in the table fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frontend.models.changes.served import Call, Served, archive, arrange, started
from tests.loops import run

MANAGEMENT = "org.pytorch.serve.grpc.management.ManagementAPIsService"
REPOSITORY = "inference.GRPCInferenceService"

SHOWS = {
    f"{MANAGEMENT}/DescribeModel",
    f"{MANAGEMENT}/ListModels",
    "msx.TrafficService/ShowTraffic",
}
"""Methods of operators that change nothing."""

DIVIDED = Call("PUT /models/m/traffic", {"1.0": 90, "2.0": 10})
LOADED = Call("POST /v1/load_lora_adapter", {"lora_name": "sql", "lora_path": "sql", "model": "m"})
ASLEEP = Call("POST /models/m/sleep?level=2")
WORKFLOW = Call("POST /workflows?url=w.war")
UPLOADED = "PUT /console/upload/uploaded.mar?initial_workers=1"

TABLE: dict[str, list[list[Call]]] = {
    "POST /models": [
        [Call("POST /models?url=new.mar&initial_workers=1")],
        [Call("POST /models?url=new.mar&initial_workers=1&synchronous=false")],
        [Call("POST /models?url=m-1.0.mar&initial_workers=1&replace=true&batch_size=4")],
        [Call("POST /models?url=new.mar&model_name=m&initial_workers=2&replace=true")],
    ],
    "PUT /models/{model_name}": [
        [Call("PUT /models/m?min_worker=2")],
        [Call("PUT /models/m?min_worker=2&max_worker=3&synchronous=true")],
        [Call("PUT /models/m?min_worker=0")],
        [Call("PUT /models/m?autoscaling=true")],
    ],
    "PUT /models/{model_name}/{model_version}": [[Call("PUT /models/m/2.0?min_worker=3&synchronous=true")]],
    "DELETE /models/{model_name}": [[Call("DELETE /models/single")]],
    "DELETE /models/{model_name}/{model_version}": [
        [Call("DELETE /models/m/2.0")],
        [Call("PUT /models/m/traffic", {"1.0": 1, "2.0": 0}), Call("DELETE /models/m/2.0")],
    ],
    "PUT /models/{model_name}/{model_version}/set-default": [
        [Call("PUT /models/m/2.0/set-default")],
        [DIVIDED, Call("PUT /models/m/2.0/set-default")],
        [DIVIDED, Call("PUT /models/m/1.0/set-default")],
    ],
    "PUT /models/{model_name}/traffic": [[DIVIDED]],
    "PUT /models/{model_name}/aliases": [[Call("PUT /models/m/aliases", {"aliases": ["gpt-4"]})]],
    "DELETE /models/{model_name}/traffic": [[DIVIDED, Call("DELETE /models/m/traffic")]],
    "POST /v1/load_lora_adapter": [[LOADED]],
    "POST /v1/unload_lora_adapter": [
        [LOADED, Call("POST /v1/unload_lora_adapter", {"lora_name": "sql", "model": "m"})]
    ],
    "POST /sleep": [[Call("POST /sleep?model=m")]],
    "POST /wake_up": [[ASLEEP, Call("POST /wake_up?model=m")]],
    "POST /models/{model_name}/sleep": [[ASLEEP]],
    "POST /models/{model_name}/wake_up": [[ASLEEP, Call("POST /models/m/wake_up")]],
    "POST /v2/repository/models/{model}/load": [
        [Call("POST /v2/repository/models/new/load")],
        [Call("POST /v2/repository/models/idle/load")],
    ],
    "POST /v2/repository/models/{model}/unload": [[Call("POST /v2/repository/models/single/unload")]],
    "PUT /console/upload/{file_name}": [[Call(UPLOADED)]],
    "POST /workflows": [[WORKFLOW]],
    "DELETE /workflows/{workflow_name}": [[WORKFLOW, Call("DELETE /workflows/w")]],
    f"{MANAGEMENT}/RegisterModel": [
        [Call(f"{MANAGEMENT}/RegisterModel", {"url": "new.mar", "initial_workers": 1, "synchronous": True})],
        [Call(f"{MANAGEMENT}/RegisterModel", {"url": "new.mar", "initial_workers": 1})],
    ],
    f"{MANAGEMENT}/ScaleWorker": [
        [Call(f"{MANAGEMENT}/ScaleWorker", {"model_name": "m", "min_worker": 2, "synchronous": True})],
        [Call(f"{MANAGEMENT}/ScaleWorker", {"model_name": "m", "min_worker": 2})],
    ],
    f"{MANAGEMENT}/SetDefault": [[Call(f"{MANAGEMENT}/SetDefault", {"model_name": "m", "model_version": "2.0"})]],
    f"{MANAGEMENT}/UnregisterModel": [[Call(f"{MANAGEMENT}/UnregisterModel", {"model_name": "single"})]],
    "msx.TrafficService/DivideTraffic": [
        [Call("msx.TrafficService/DivideTraffic", {"model_name": "m", "weights": {"1.0": 1, "2.0": 1}})]
    ],
    "msx.TrafficService/EndTraffic": [[DIVIDED, Call("msx.TrafficService/EndTraffic", {"model_name": "m"})]],
    f"{REPOSITORY}/RepositoryModelLoad": [[Call(f"{REPOSITORY}/RepositoryModelLoad", {"model_name": "new"})]],
    f"{REPOSITORY}/RepositoryModelUnload": [[Call(f"{REPOSITORY}/RepositoryModelUnload", {"model_name": "single"})]],
}
"""Calls that need no more than what `arrange` makes. The last one of each meets a full disk."""

CALLS = [calls for of_one in TABLE.values() for calls in of_one]


def managed(served: Served) -> Iterator[str]:
    yield from (f"{route.method} {route.path}" for route in served.changing_routes())
    yield from (method.target for method in served.managing_methods())


def test_every_call_is_in_the_table(tmp_path: Path) -> None:
    async def test() -> None:
        async with started(tmp_path) as served:
            assert {*managed(served)} - SHOWS == {*TABLE}

    run(test())


@pytest.mark.parametrize("calls", CALLS, ids=[" then ".join(one.target for one in calls) for calls in CALLS])
def test_what_cannot_be_saved_is_not_in_force(tmp_path: Path, calls: list[Call]) -> None:
    *before, call = [one._replace(body=archive(tmp_path)) if one.target == UPLOADED else one for one in calls]

    async def refused_then_done() -> object:
        async with started(tmp_path) as served:
            await arrange(tmp_path, served)
            for one in before:
                assert (await served.call(one))[0] < 300
            was, stored = served.in_force(), await served.harness.stored()
            with served.full_disk():
                status, text = await served.call(call)
            assert (status, "the server's state cannot be written" in text) == (500, True), text
            assert (served.in_force(), await served.harness.stored()) == (was, stored)
            status, text = await served.call(call)
            assert status < 300, text
            now = served.in_force()
            assert now != was
            return now

    async def restarted(now: object) -> None:
        async with started(tmp_path) as served:
            await served.settled()
            assert served.in_force() == now

    run(restarted(run(refused_then_done())))
