"""`scripts/npu-check` where the emulation stands for the NPU: it compares with itself, and finds no difference."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.emulated_ascend.calls import Case
from tests.emulated_ascend.npu_check import machine, operators, questions
from tests.emulated_ascend.npu_questions import QUESTIONS, chosen_tokens
from tests.emulated_ascend.tables import ACCEPTED
from tests.llm.runners import FAMILIES

pytestmark = pytest.mark.mindspore
ROOT = Path(__file__).parents[2]

WITH_EXPERTS = (
    "deepseek_v2", "deepseek_v3", "ernie4_5_moe", "gemma4_experts", "glm4_moe", "gpt_oss", "minimax_m2", "mixtral",
    "qwen2_moe", "qwen3_moe",
)  # fmt: skip
"""Families whose rounded router may choose otherwise."""


def test_each_call_of_the_tables_has_a_row() -> None:
    title, *rows = operators(emulated=True)
    assert title.startswith("| call | difference |")
    told = {"AllReduce": "not asked: it takes several NPUs"}
    assert rows == [f"| {case} | {told.get(case.operator, '0.00e+00')} |" for case in ACCEPTED]


def test_what_only_a_device_can_answer_is_not_asked() -> None:
    assert list(machine(emulated=True))[1] == "- no NPU: the emulation stands for it"
    assert len(list(questions(emulated=True))) == len(QUESTIONS)


def test_chosen_tokens_are_compared_with_the_hosts() -> None:
    assert chosen_tokens(3, vocabulary=500).startswith("100% are the host's; ")


def test_a_call_on_a_machine_without_an_npu_ends_in_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tests.emulated_ascend import npu_check

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.emulated_ascend.tables.ACCEPTED", ACCEPTED[:1])
    (_, row) = npu_check.operators(emulated=False)
    assert isinstance(ACCEPTED[0], Case)
    assert "Unsupported op [ReshapeAndCache] on CPU" in row


@pytest.mark.long
def test_the_whole_page() -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "npu-check", "--emulated"],
        env={**os.environ, "GLOG_v": "4"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = [
        line.strip("| ").split(" | ")
        for line in done.stdout.splitlines()
        if "| float16 | " in line or "| bfloat16 | " in line
    ]
    assert [tuple(row[:2]) for row in rows] == [(it, dtype) for it in FAMILIES for dtype in ("float16", "bfloat16")]
    others = {tuple(row[:2]): row[-1] for row in rows if row[-1] != "100%"}
    assert {dtype for _, dtype in others} <= {"bfloat16"}
    dense = {family: same for (family, _), same in others.items() if family not in WITH_EXPERTS}
    assert set(dense.values()) <= {"98%"}, "of 40 tokens one, whose best two logits are nearer than the rounding"
    assert "Send this page to the project." in done.stdout
