"""Spans of a server and its workers, as a collector of OpenTelemetry's protocol gets them."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.torchserve.grpc_client import INFERENCE, stub_of
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.e2e.test_stages import CONFIGS, pack_stages
from tests.free_ports import free_port
from tests.otlp_receiver import Collector, ReceivedSpan, collecting
from tests.wars import CHAIN, MODELS, pack_node, pack_war

pytestmark = pytest.mark.e2e

TRACE, CLIENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ASKED = {"traceparent": f"00-{TRACE}-{CLIENT}-01"}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("traced")
    store = new_store(folder)
    pack_service("traced", store, config="minWorkers: 1\nmaxWorkers: 1\nbatchSize: 4\n")
    pack_service("parrot", store)
    settings = f"otlp_endpoint={collector.endpoint}\ntrace_sample_ratio=0\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        with run_server(folder, "--models", "traced.mar", "parrot.mar", properties=settings) as running:
            yield running


def whole(collector: Collector, name: str, trace: str, count: int = 1) -> list[ReceivedSpan]:
    """The requests' own spans of this trace, when they and the handler's have come."""

    def found() -> list[ReceivedSpan]:
        return [span for span in collector.named(name) if span.trace == trace]

    wait_until(lambda: len(found()) >= count, f"{count} spans {name} of {trace}")
    return found()


def test_a_request_in_the_clients_trace(server: RunningServer, collector: Collector) -> None:
    reply = server.predict("traced", {}, headers={**ASKED, "tracestate": "a=b"})
    [request] = whole(collector, "predict traced", TRACE)
    assert (request.parent, request.state) == (CLIENT, "a=b")
    assert request.attributes["msx.model.name"] == "traced"
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["msx.request.id"] == reply.headers["x-request-id"]
    assert request.error is None
    assert request.resource["service.name"] == "msx-serve"
    children = collector.children(request)
    assert children["batch"].links == [(TRACE, request.id)]
    assert "worker" not in children, "the batch's span says the same"
    assert all(request.start <= span.start <= span.end <= request.end for span in children.values())
    [own] = whole(collector, "look up", TRACE)
    assert own.parent == request.id
    assert own.attributes == {"rows": 1}
    assert own.resource["msx.process"] == "worker"
    [inner] = whole(collector, "inner", TRACE)
    assert inner.parent == own.id
    assert reply.text == f"00-{TRACE}-{own.id}-01", "what the handler sends to others"


def test_a_batch_has_links_to_its_requests(server: RunningServer, collector: Collector) -> None:
    traces = [f"{number:032x}" for number in range(1, 4)]

    def together() -> bool:
        """The first is sent to the idle worker alone; which of the others are together is chance."""
        with ThreadPoolExecutor(3) as pool:
            asked = [
                pool.submit(server.predict, "traced", {}, headers={"traceparent": f"00-{trace}-{CLIENT}-01"})
                for trace in traces
            ]
            assert [one.result().status_code for one in asked] == [200] * 3
        return any(span.trace in traces and len(span.links) > 1 for span in collector.named("batch"))

    wait_until(together, "a batch of several")
    batch = next(span for span in collector.named("batch") if span.trace in traces and len(span.links) > 1)
    assert int(batch.attributes["msx.batch.size"]) >= len(batch.links)
    requests = {(one.trace, one.id) for one in collector.named("predict traced")}
    assert set(batch.links) <= requests
    assert (batch.trace, batch.parent) in batch.links, "it stands in the trace of one of them"


def test_a_failure(server: RunningServer, collector: Collector) -> None:
    trace = "f" * 31 + "1"
    reply = server.predict("traced", {"fail": True}, headers={"traceparent": f"00-{trace}-{CLIENT}-01"})
    assert reply.status_code >= 500
    [request] = whole(collector, "predict traced", trace)
    assert request.error is not None
    assert request.attributes["http.response.status_code"] == reply.status_code
    [own] = whole(collector, "look up", trace)
    assert own.error == "RuntimeError: as asked"


def test_grpc(server: RunningServer, collector: Collector) -> None:
    trace = "e" * 32
    with stub_of(server, INFERENCE) as stub:
        stub.Predictions(
            model_name="traced",
            input={"data": b"x"},
            options={"metadata": [("traceparent", f"00-{trace}-{CLIENT}-01"), ("tracestate", "a=b")]},
        )
    [request] = whole(collector, "predict traced", trace)
    assert (request.parent, request.state) == (CLIENT, "a=b")
    [own] = whole(collector, "look up", trace)
    assert (own.parent, own.state) == (request.id, "a=b")


def test_a_streamed_text(server: RunningServer, collector: Collector) -> None:
    trace = "d" * 32
    body = {"messages": [{"role": "user", "content": "one two three"}], "stream": True}
    headers = {"traceparent": f"00-{trace}-{CLIENT}-01"}
    assert server.inference.post("/v1/chat/completions", json=body, headers=headers).status_code == 200
    [request] = whole(collector, "generate parrot", trace)
    assert request.events == ["first token"]
    assert {"prefill", "decode"} <= collector.children(request).keys()


def test_logs_and_exemplars_name_the_trace(server: RunningServer, collector: Collector) -> None:
    trace = "c" * 32
    reply = server.predict("traced", {}, headers={"traceparent": f"00-{trace}-{CLIENT}-01"})
    wait_until(lambda: trace in server.log.read_text(), "the lines are written")

    def lines() -> list[dict[str, Any]]:
        return [entry for entry in server.log_lines() if entry.get("trace_id") == trace]

    wait_until(lambda: {"msx.access"} < {entry["logger"] for entry in lines()}, "the handler's and the access line")
    assert {entry["request_id"] for entry in lines()} == {reply.headers["x-request-id"]}
    accept = {"accept": "application/openmetrics-text; version=1.0.0"}
    text = httpx.get(f"{server.info['metrics']}/metrics", headers=accept).text
    assert re.search(rf'msx_request_seconds_bucket{{[^}}]*}} \S+ # {{trace_id="{trace}"}} \S+ \d+', text)
    assert re.search(r'msx_spans_total{result="exported"} [1-9]', text)
    assert 'msx_spans_total{result="dropped"} 0' in text


@pytest.mark.parametrize("headers", [{}, {"traceparent": f"00-{'b' * 32}-{CLIENT}-00"}, {"traceparent": "00-x"}])
def test_what_is_not_sampled_has_no_spans(server: RunningServer, collector: Collector, headers: dict[str, str]) -> None:
    reply = server.predict("traced", {}, headers=headers)
    assert reply.text == "none"
    assert server.predict("traced", {}, headers={"traceparent": f"00-{'a' * 32}-{CLIENT}-01"}).status_code == 200
    whole(collector, "predict traced", "a" * 32)
    assert reply.headers["x-request-id"] not in {span.attributes.get("msx.request.id") for span in collector.spans}


def test_a_collector_that_is_not_there(tmp_path: Path) -> None:
    """A warning of the server and one of its worker, no request lost, and an end in time."""
    store = new_store(tmp_path)
    pack_service("traced", store)
    settings = f"otlp_endpoint=http://127.0.0.1:{free_port()}\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        with run_server(tmp_path, "--models", "traced.mar", properties=settings) as server:

            def warnings() -> int:
                assert server.predict("traced", {}).status_code == 200
                return server.log.read_text().count("Spans cannot be sent")

            wait_until(lambda: warnings() == 2, "both have tried")
            assert server.predict("traced", {}).status_code == 200
            assert server.terminate() == 0
            assert server.log.read_text().count("Spans cannot be sent") == 2


def test_a_collector_that_does_not_answer(tmp_path: Path) -> None:
    """Requests are answered, and the server ends in time and says what it has lost."""
    store = new_store(tmp_path)
    pack_service("echo", store)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        settings = f"otlp_endpoint=http://127.0.0.1:{silent.getsockname()[1]}\n"
        with run_server(tmp_path, "--models", "echo.mar", properties=settings) as server:
            assert server.predict("echo", "x").status_code == 200
            silent.accept()[0].close()  # it has tried
            kept = silent.accept()[0]
            assert server.predict("echo", "x").status_code == 200
            assert server.terminate() == 0
            assert re.search(
                r"\d+ spans were not sent to http://127.0.0.1:\d+/v1/traces within 3 s", server.log.read_text()
            )
            kept.close()


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[RunningServer]:
    """Every request is sampled."""
    folder = tmp_path_factory.mktemp("graphs")
    store = new_store(folder)
    pack_stages(store, "diamond", CONFIGS["diamond"])
    pack_service("parrot", store)
    pack_node(store, "m1")
    pack_war(store, "chain", MODELS + CHAIN)
    settings = f"otlp_endpoint={collector.endpoint}\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        with run_server(folder, "--models", "diamond.mar", "parrot.mar", properties=settings) as running:
            assert running.management.post("/workflows", params={"url": "chain.war"}).status_code == 200
            yield running


GRAPHS = {
    "diamond": ("/predictions/diamond", ["diamond/join", "diamond/one", "diamond/three", "diamond/two"]),
    "chain": ("/wfpredict/chain", ["chain__m1", "chain__post", "chain__pre"]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_nodes_of_a_graph_are_below_its_request(graphs: RunningServer, collector: Collector, name: str) -> None:
    path, nodes = GRAPHS[name]
    assert graphs.inference.post(path, content="x", headers={"content-type": "text/plain"}).status_code == 200
    wait_until(lambda: collector.named(f"predict {name}"), "the request's span")
    [request] = collector.named(f"predict {name}")
    below = [span for span in collector.spans if span.parent == request.id]
    found = [span for span in below if "msx.model.name" in span.attributes]
    assert sorted(span.name for span in found) == [f"predict {node}" for node in nodes]
    assert {span.name for span in below} - {span.name for span in found} <= {"parse", "queue"}, "nodes tell the rest"
    assert {span.trace for span in below} == {request.trace}
    for span in found:
        batch = collector.children(span)["batch"]
        assert batch.links == [(request.trace, span.id)]
        assert request.start <= span.start <= batch.start <= batch.end <= span.end


def test_the_prompts_of_a_request_are_one_trace(graphs: RunningServer, collector: Collector) -> None:
    before = len(collector.named("generate parrot"))
    body = {"model": "parrot", "prompt": ["a b", "c d", "e"]}
    assert graphs.inference.post("/v1/completions", json=body).status_code == 200
    wait_until(lambda: len(collector.named("generate parrot")) == before + 3, "three prompts")
    texts = collector.named("generate parrot")[before:]
    [first] = [span for span in texts if not span.parent]
    assert {(span.trace, span.parent) for span in texts} == {(first.trace, ""), (first.trace, first.id)}
