"""The example's Llama over the ranks of a real server's groups: the text of one rank, to many clients at once, to the
clients that users have, and to requests of all kinds; no text depends on the others, and nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_net.grpc.messages import message_class
from tests.contract.suites import LAYOUTS as SUITES
from tests.contract.suites import checks, outcomes_of
from tests.e2e.llama import EXAMPLE, few_graphs, pack_llama
from tests.e2e.llm_requests import KINDS, SHARES, ask_all
from tests.e2e.server import RunningServer, client_of, new_store, run_server, wait_until

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore, pytest.mark.collectives]

LAYOUTS = ["tp2", "pp2", pytest.param("pptp4", marks=pytest.mark.long)]
"""pptp runs without graphs in four processes on a CPU, and takes its time. Each change has its collectives in
tests/core/mindspore_parallel, and its groups in test_groups."""
TIGHT = "maxBatchTotalTokens: 384\njobQueueSize: 1000\n"
"""Much less than all slots full: texts wait, and may have to give their place back."""
START = 240.0
"""Seconds until all ranks of all groups have compiled their graphs, on a machine that is busy."""
SUBJECTS = ["Exceptions are", "An object", "Functions", "A class", "Sets", "The with statement", "Modules are",
            "import", "A list is", "Strings and", "def", "for", "Names refer to", "A generator", "Dictionaries",
            "Numbers", "Comparisons", "The lambda expression", "If the", "The return value"]  # fmt: skip
CLIENTS = 32

Request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
Response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")
Ask = Callable[[RunningServer, str, str], list[bytes]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("llama")
    store = new_store(folder)
    for name in ("one", "tp2", "pp2", "pptp4"):
        file = "model-config.yaml" if name == "one" else f"model-config-{name}.yaml"
        pack_llama(store, name, few_graphs((EXAMPLE / file).read_text()) + TIGHT)
    models = [f"{name}.mar" for name in ("one", "tp2", "pp2")]
    with run_server(folder, "--models", *models, tokens=True, ready=False) as running:
        running.wait_ready(START)
        yield running


@pytest.fixture(scope="module")
def pptp4(server: RunningServer) -> None:
    assert server.register(server.store / "pptp4.mar", synchronous="false").status_code == 202
    server.wait_serving(START)


@pytest.fixture(autouse=True)
def _pptp4_runs(request: pytest.FixtureRequest) -> None:
    """From the first of its tests on."""
    if "pptp4" in request.node.name:
        request.getfixturevalue("pptp4")


def wanted(prompt: str) -> dict[str, object]:
    return {"prompt": prompt, "max_new_tokens": 8}


def key_of(server: RunningServer) -> str:
    assert server.keys is not None
    key: str = server.keys["inference"]["key"]
    return key


def by_http(server: RunningServer, model: str, prompt: str) -> list[bytes]:
    with (
        client_of(server.info["inference"], key_of(server)) as client,
        client.stream("POST", f"/predictions/{model}", json=wanted(prompt)) as reply,
    ):
        assert reply.status_code == 200, reply.read()
        assert reply.headers["content-type"] == "text/plain; charset=utf-8"
        return list(reply.iter_raw())


def by_grpc(server: RunningServer, model: str, prompt: str) -> list[bytes]:
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        path = f"/{SERVICE}/StreamPredictions"
        call = channel.unary_stream(path, Request.SerializeToString, Response.FromString)
        fields = {name: str(value).encode() for name, value in wanted(prompt).items()}
        request = Request(model_name=model, input=fields)
        metadata = (("authorization", f"Bearer {key_of(server)}"),)
        return [response.prediction for response in call(request, timeout=60, metadata=metadata)]


@pytest.fixture(scope="module")
def expected(server: RunningServer) -> dict[str, bytes]:
    """Texts of one rank."""
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda prompt: b"".join(by_http(server, "one", prompt)), SUBJECTS)
        return dict(zip(SUBJECTS, answers, strict=True))


ASKED = [
    *((layout, ask) for layout in ("tp2", "pp2") for ask in (by_http, by_grpc)),
    pytest.param("pptp4", by_http, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("layout", "ask"), ASKED)
def test_many_clients_get_the_text_of_one_rank(
    server: RunningServer, expected: dict[str, bytes], layout: str, ask: Ask
) -> None:
    prompts = [SUBJECTS[n % len(SUBJECTS)] for n in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        streams = list(pool.map(lambda prompt: ask(server, layout, prompt), prompts))
    assert [b"".join(chunks) for chunks in streams] == [expected[prompt] for prompt in prompts]


@pytest.mark.parametrize("layout", ["tp2", "pp2"])
def test_a_stream_comes_in_pieces(server: RunningServer, layout: str) -> None:
    """The first piece leaves before the last is made; how many a client reads at once is its affair."""
    long = {"prompt": SUBJECTS[0], "max_new_tokens": 60}
    with (
        client_of(server.info["inference"], key_of(server)) as client,
        client.stream("POST", f"/predictions/{layout}", json=long) as reply,
    ):
        assert reply.headers["ts_stream_next"] == "true"
        assert len(list(reply.iter_raw())) > 1


@pytest.mark.parametrize("layout", ["one", "tp2", "pp2"])
def test_it_says_after_sleep_what_it_said_before(
    server: RunningServer, expected: dict[str, bytes], layout: str
) -> None:
    workers = server.management.get(f"/models/{layout}").json()[0]["workers"]
    slept = server.management.post("/sleep", params={"model": layout, "level": 2})
    assert (slept.status_code, slept.json()) == (200, {"status": f'Model "{layout}" is asleep at level 2'})
    assert server.management.get("/is_sleeping", params={"model": layout}).json() == {"is_sleeping": True}
    assert server.management.get(f"/models/{layout}").json()[0]["state"] == "ASLEEP"
    refused = server.inference.post(f"/predictions/{layout}", json=wanted(SUBJECTS[0]))
    assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
    assert "is asleep" in refused.text
    assert server.management.post(f"/models/{layout}/wake_up").status_code == 200
    assert b"".join(by_http(server, layout, SUBJECTS[0])) == expected[SUBJECTS[0]]
    again = server.management.get(f"/models/{layout}").json()[0]["workers"]
    assert [(one["pid"], one["generation"]) for one in again] == [(one["pid"], one["generation"]) for one in workers]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_client_that_leaves_does_not_hold_up_the_group(
    server: RunningServer, expected: dict[str, bytes], layout: str
) -> None:
    long = {"prompt": "The", "max_new_tokens": 200, "temperature": 1.0}
    with (
        client_of(server.info["inference"], key_of(server)) as client,
        client.stream("POST", f"/predictions/{layout}", json=long) as reply,
    ):
        next(reply.iter_raw())
    assert b"".join(by_http(server, layout, SUBJECTS[0])) == expected[SUBJECTS[0]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_wrong_request_is_refused_and_the_group_goes_on(
    server: RunningServer, expected: dict[str, bytes], layout: str
) -> None:
    refused = server.inference.post(f"/predictions/{layout}", json={"prompt": "x", "max_new_tokens": 999})
    assert refused.status_code == 400
    assert (
        "max_tokens: This model's maximum context length is 256 tokens (maxTotalTokens); 2 of the prompt and 999 to "
        "be generated are 1001" in refused.text
    )
    assert b"".join(by_http(server, layout, SUBJECTS[1])) == expected[SUBJECTS[1]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_describe_shows_how_the_model_is_divided(server: RunningServer, layout: str) -> None:
    (described,) = server.management.get(f"/models/{layout}", params={"customized": "true"}).json()
    custom = described["customizedMetadata"]
    assert (custom["pipeline_stages"], custom["tensor_parallel"]) == (1 + ("pp" in layout), 1 + ("tp" in layout))
    assert (custom["context_length"], custom["concurrent_texts"]) == (256, 8)


@pytest.fixture(scope="module")
def outcomes(server: RunningServer) -> dict[str, dict[str, str]]:
    return outcomes_of(SUITES, server)


@pytest.mark.contract
@pytest.mark.parametrize(("name", "check"), checks(SUITES))
def test_client(outcomes: dict[str, dict[str, str]], server: RunningServer, name: str, check: str) -> None:
    assert not outcomes[name][check], f"{outcomes[name][check]}\n{server.tail()}"


@pytest.mark.parametrize("requests", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_no_text_of_requests_of_all_kinds_depends_on_others(server: RunningServer, requests: int) -> None:
    outcomes = asyncio.run(ask_all(server, key_of(server), requests))
    assert sum(outcomes.values()) == requests
    assert set(outcomes) == set(KINDS)
    for model in SHARES:
        assert server.metric("msx_llm_prefix_hit_tokens", ModelName=model) > 0
        assert server.metric("msx_worker_restarts_total", model=model) == 0


@pytest.mark.parametrize("model", ["one", *LAYOUTS])
def test_nothing_is_left_of_all_those_requests(server: RunningServer, model: str) -> None:
    """No texts, slots and blocks of engines are left, no jobs of the frontend; those of clients that left, neither."""
    engine, queue = (
        ("msx_llm_running", "msx_llm_waiting", "msx_llm_blocks_used"),
        ("msx_queue_depth", "msx_requests_in_flight"),
    )

    def left() -> bool:
        gauges = [*((gauge, {"ModelName": model}) for gauge in engine), *((gauge, {"model": model}) for gauge in queue)]
        return any(server.metric(gauge, **labels) for gauge, labels in gauges)

    wait_until(lambda: not left(), "nothing is left", server.tail)
