"""Parts of the handler that need no engine."""

from __future__ import annotations

import logging.config
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from msx_sdk.errors import HandlerLoadError, PredictionError
from msx_sdk.generation import GenerateRequest, MessageDelta, SamplingParams
from msx_vllm import start_errors
from msx_vllm.deltas import OutputDeltas
from msx_vllm.environment import log_configuration, prepare, variables
from msx_vllm.memory import host_cache_bytes
from msx_vllm.outputs import GrownText
from msx_vllm.start_errors import FILE, explained
from msx_vllm.token_texts import TokenTexts, piece_bytes
from tests.vllm.stub.vllm.tokenizers.hf import HfTokenizer


def ended(reason: str, detail: str | int | None = None) -> Any:
    text = SimpleNamespace(
        index=0,
        text="a",
        token_ids=[97],
        logprobs=None,
        cumulative_logprob=None,
        finish_reason=reason,
        stop_reason=detail,
    )
    return SimpleNamespace(
        prompt_token_ids=[1], prompt_logprobs=None, outputs=[text], finished=True, num_cached_tokens=None
    )


@pytest.mark.parametrize(
    ("reason", "detail", "told"),
    [
        ("length", None, ("length", None)),
        ("stop", None, ("eos", None)),
        ("stop", "x", ("stop", "x")),
        ("stop", 9, ("stop", 9)),
        ("stop", 2, ("eos", None)),  # another end of the model's own
    ],
)
def test_how_a_text_ends(reason: str, detail: str | int | None, told: tuple[str, object]) -> None:
    request = GenerateRequest(prompt="a", params=SamplingParams(stop_token_ids=(9,)))
    (delta,) = OutputDeltas(request, TokenTexts(HfTokenizer()), 1).read(ended(reason, detail))
    assert (delta.finish_reason, delta.stop_reason) == told


def test_a_text_that_vllm_gave_up_fails() -> None:
    deltas = OutputDeltas(GenerateRequest(prompt="a"), TokenTexts(HfTokenizer()), 1)
    with pytest.raises(PredictionError, match="vLLM ended the text before it was complete: abort"):
        list(deltas.read(ended("abort")))


def test_a_parser_gets_one_copy_of_the_prompt() -> None:
    prompts: list[list[int]] = []

    class Parsing:
        keeps_special = False

        def message(self, text: GrownText, prompt: list[int], *, stream: bool) -> MessageDelta:
            prompts.append(prompt)
            return MessageDelta()

    deltas = OutputDeltas(GenerateRequest(prompt="a"), TokenTexts(HfTokenizer()), 1, parsing=Parsing())
    for _ in range(2):
        list(deltas.read(ended("stop")))
    first, second = prompts
    assert first == [1]
    assert second is first


@pytest.mark.parametrize(
    ("piece", "bytes"), [("<0xE2>", b"\xe2"), ("Ġa", b" a"), ("âĤ", b"\xe2\x82"), ("▁日", "▁日".encode())]
)
def test_the_bytes_of_a_piece(piece: str, bytes: bytes) -> None:
    assert piece_bytes(piece) == bytes


def test_caches_stand_where_the_server_keeps_them_unless_the_operator_says_otherwise(tmp_path: Path) -> None:
    found = variables({"TRITON_CACHE_DIR": "/t", "VLLM_NO_USAGE_STATS": "0"}, tmp_path, Path("/cache"))
    assert found["VLLM_CACHE_ROOT"] == "/cache/vllm"
    assert "TRITON_CACHE_DIR" not in found
    assert (found["VLLM_NO_USAGE_STATS"], found["DO_NOT_TRACK"], found["HF_HUB_OFFLINE"]) == ("1", "1", "1")
    assert found["VLLM_RPC_BASE_PATH"] == "."  # of whatever length the worker's folder is


def test_temporary_files_go_with_the_worker(here: Path) -> None:
    prepare(here, None)
    temp = Path(os.environ["TMPDIR"])
    assert temp.is_dir()
    assert temp.parent == here


def test_vllms_logs_are_records(capfd: pytest.CaptureFixture[str]) -> None:
    logging.config.dictConfig(log_configuration())
    logging.getLogger("vllm.test").info("hello")
    logging.getLogger("vllm").handlers.clear()
    assert '"logger":"vllm.test","message":"hello"' in capfd.readouterr().err


def test_a_start_that_vllm_refuses_tells_its_sentence(here: Path) -> None:
    """Without what Pydantic prints of the arguments."""
    with pytest.raises(HandlerLoadError, match=r"these arguments: the context is too long$"), explained(here):
        raise ValueError("the context is too long")
    with (
        pytest.raises(HandlerLoadError, match=r"these arguments: the context is too long; seqs: not a number$"),
        explained(here),
    ):
        raise Invalid("1 validation error for ModelConfig [input_value=ArgsKwargs((), {})]")


class Invalid(ValueError):
    """As Pydantic's ValidationError."""

    def errors(self) -> list[dict[str, Any]]:
        return [{"msg": "Value error, the context is too long", "loc": ()}, {"msg": "not a number", "loc": ("seqs",)}]


def test_a_start_that_fails_in_another_process_tells_its_first_error(here: Path) -> None:
    """Which vLLM's own exception does not."""
    prepare(here, None)
    logging.config.dictConfig(log_configuration())
    log, failed = logging.getLogger("vllm.test"), RuntimeError("See root cause above.")
    try:
        raise ValueError("Decrease --kv-cache-memory-bytes")
    except ValueError:
        log.exception("a process of vLLM failed")
    log.error("so did the next")
    for handler in logging.getLogger("vllm").handlers:
        handler.close()
    logging.getLogger("vllm").handlers.clear()
    with (
        pytest.raises(HandlerLoadError, match=r"start: ValueError: Decrease --kv-cache-memory-bytes$"),
        explained(here),
    ):
        raise failed
    (here / FILE).unlink()
    with pytest.raises(HandlerLoadError, match="start: See root cause above"), explained(here):
        raise failed
    (here / FILE).write_text("\n")
    with pytest.raises(HandlerLoadError, match="start: See root cause above"), explained(here):
        raise failed


def test_the_errors_of_a_long_life_fill_no_disk(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(start_errors.HANDLER, "maxBytes", 1000)
    prepare(here, None)
    logging.config.dictConfig(log_configuration())
    for _ in range(50):
        logging.getLogger("vllm.test").error("it failed")
    for handler in logging.getLogger("vllm").handlers:
        handler.close()
    logging.getLogger("vllm").handlers.clear()
    assert 0 < sum(file.stat().st_size for file in here.glob(f"{FILE}*")) <= 2 * 1000


def test_memory_is_divided_by_workers_and_ranks() -> None:
    assert host_cache_bytes(4, limit=1600) == 100


def test_what_vllm_leaves_stands_in_the_workers_folder(here: Path) -> None:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(here / "elsewhere")
    prepare(here, None)
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
    with tempfile.NamedTemporaryFile() as file:
        assert Path(file.name).parent == here / "temp"


def test_the_processes_of_a_worker_meet_on_its_machine(tmp_path: Path) -> None:
    found = variables({"GLOO_SOCKET_IFNAME": "eth0"}, tmp_path, None)
    assert found["VLLM_HOST_IP"] == "127.0.0.1"
    assert "GLOO_SOCKET_IFNAME" not in found
