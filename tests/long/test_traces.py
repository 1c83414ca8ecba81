"""The trace of a text that MSX's own engine writes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.llama import EXAMPLE, few_graphs, pack_llama
from tests.e2e.server import RunningServer, new_store, run_server, wait_until
from tests.otlp_receiver import Collector, ReceivedSpan, collecting

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore, pytest.mark.long, pytest.mark.timeout(400)]


TRACE, CLIENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("traces")
    pack_llama(new_store(folder), "llama", few_graphs((EXAMPLE / "model-config.yaml").read_text()))
    settings = f"otlp_endpoint={collector.endpoint}\n"
    with run_server(folder, "--models", "llama.mar", ready=False, properties=settings) as running:
        running.wait_ready(240)
        yield running


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_has_its_first_token_and_its_two_phases(
    server: RunningServer, collector: Collector, stream: bool
) -> None:
    before = len(collector.named("generate llama"))
    body = {"model": "llama", "prompt": "Once", "max_tokens": 24, "stream": stream}
    reply = server.inference.post("/v1/completions", json=body)
    assert reply.status_code == 200, reply.text
    wait_until(lambda: len(collector.named("generate llama")) > before, "its span")
    [request] = collector.named("generate llama")[before:]
    assert (request.events, request.error, request.parent) == (["first token"], None, "")
    children = collector.children(request)
    assert {"prefill", "decode"} <= children.keys()
    prefill, decode = children["prefill"], children["decode"]
    assert request.start <= prefill.start <= prefill.end == decode.start <= decode.end == request.end
    assert prefill.links == [(children["batch"].trace, children["batch"].id)]


def test_the_prompts_of_a_client_are_one_trace_which_the_log_names(server: RunningServer, collector: Collector) -> None:
    body = {"model": "llama", "prompt": ["Once", "There"], "max_tokens": 8}
    headers = {"traceparent": f"00-{TRACE}-{CLIENT}-01"}
    reply = server.inference.post("/v1/completions", json=body, headers=headers)
    assert reply.status_code == 200, reply.text
    id = reply.headers["x-request-id"]

    def texts() -> dict[str, ReceivedSpan]:
        return {span.parent: span for span in collector.named("generate llama") if span.trace == TRACE}

    wait_until(lambda: len(texts()) == 2, "the spans of both prompts")
    found = texts()
    assert found.keys() == {CLIENT, found[CLIENT].id}
    assert found[CLIENT].attributes["msx.request.id"] == id
    assert all("prefill" in collector.children(span) for span in found.values())

    def told() -> set[str]:
        lines = [json.loads(line) for line in server.tail().splitlines() if line.startswith("{") and TRACE in line]
        return {line["logger"] for line in lines if (line.get("trace_id"), line.get("request_id")) == (TRACE, id)}

    wait_until(lambda: "msx.access" in told(), "the access log's line")
