"""A folder in Hugging Face's layout by vLLM's engine, of which a stub stands in an interpreter of the server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import new_store, run_server, wait_until
from tests.interpreters import install_package, new_interpreter, site_packages
from tests.otlp_receiver import collecting
from tests.vllm.conftest import STUB
from tests.vllm.tiny_model import make_tiny_model

pytestmark = pytest.mark.e2e


@pytest.fixture
def here() -> Iterator[Path]:
    """A folder whose path leaves room for that of a socket."""
    with tempfile.TemporaryDirectory(prefix="e-", dir="/tmp") as folder:
        yield Path(folder)


def test_a_folder_by_the_engine_of_another_interpreter(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its texts are traced as those of MSX's own engine."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    python, site = new_interpreter(here / "other"), site_packages(here / "other")
    install_package(site, "vllm", "0.32.0")
    (site / "stub.pth").write_text(f"{STUB}\n")
    folder = make_tiny_model(here / "tiny")
    new_store(here)
    flags = ("--huggingface", f"tiny={folder}", "--engine", "vllm")
    with (
        collecting() as collector,
        run_server(here, *flags, properties=f"pythons=vllm={python}\notlp_endpoint={collector.endpoint}\n") as server,
    ):
        assert server.describe("tiny")["interpreter"]["name"] == "vllm"
        headers = {"traceparent": f"00-{'d' * 32}-{'b' * 16}-01"}
        body = {"model": "tiny", "prompt": "a", "max_tokens": 2}
        reply = server.inference.post("/v1/completions", json=body, headers=headers)
        assert reply.json()["usage"]["completion_tokens"] == 2
        wait_until(lambda: collector.named("generate tiny"), "its spans have come", server.tail)
        (request,) = collector.named("generate tiny")
        assert request.events == ["first token"]
        assert "prefill" in collector.children(request)
