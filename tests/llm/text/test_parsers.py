"""Parsers that only vLLM has."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.config import ModelConfig
from msx_llm.text.parsers import check_parsers, read_chat
from msx_sdk.context import Context, ModelInfo
from msx_sdk.errors import HandlerLoadError


def test_parsers_of_vllm_are_refused() -> None:
    check_parsers(ModelConfig(tool_parser="hermes", reasoning_parser="qwen3"))
    with pytest.raises(HandlerLoadError, match="reasoningParser: vllm:x is a parser of vLLM's, which --handler vllm"):
        check_parsers(ModelConfig(reasoning_parser="vllm:x"))


@pytest.mark.parametrize(("parser", "warns"), [(None, True), ("hermes", False)])
def test_calls_that_nobody_reads_are_told(
    parser: str | None, warns: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "chat_template.jinja").write_text("{% for tool in tools %}<|call|>{{ tool }}{% endfor %}")
    chat = read_chat(Context(ModelInfo("m", model_dir=tmp_path)), ModelConfig(tool_parser=parser))
    assert chat is not None
    assert ("m: the chat template takes tools, and nobody here reads the calls" in caplog.text) == warns
