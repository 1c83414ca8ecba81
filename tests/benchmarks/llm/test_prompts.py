from __future__ import annotations

from pathlib import Path

from benchmarks.llm import prompts
from benchmarks.llm.words_checkpoint import WordsCheckpoint
from msx_llm.text import Tokenizer


def test_its_longest_prompts_fit_and_are_no_shorter_than_needed(tmp_path: Path) -> None:
    files = WordsCheckpoint(500, 300)
    files.write(tmp_path)
    tokenizer = Tokenizer.from_folder(tmp_path)
    loads = prompts.loads_of(files, 300, 5_000)
    texts, ids = loads[prompts.TEXTS].prompts, loads[prompts.IDS].prompts
    assert len({*texts}) == prompts.CLIENTS
    for text, expected in zip(texts, ids, strict=True):
        assert isinstance(text, str)
        assert 290 < len(expected) < 300
        assert tokenizer.encode(text, add_special_tokens=False) == expected


def test_one_text_is_refused_by_its_length_and_one_by_its_tokens(tmp_path: Path) -> None:
    files = WordsCheckpoint(500, 300)
    files.write(tmp_path)
    tokenizer, loads = Tokenizer.from_folder(tmp_path), prompts.loads_of(files, 300, 9_000)
    least = {name: tokenizer.least(str(loads[name].prompts[0])) for name in (prompts.BY_LENGTH, prompts.BY_TOKENS)}
    assert least[prompts.BY_LENGTH] > 300
    assert least[prompts.BY_TOKENS] == 0


def test_gaps_are_compared_within_a_round() -> None:
    refused = {prompts.BY_LENGTH: [12.0, 14.0, 10.0], prompts.BY_TOKENS: [40.0, 20.0, 30.0]}
    found = {prompts.ALONE: [10.0, 11.0, 9.0], prompts.IDS: [10.0, 20.0, 30.0], prompts.TEXTS: [20.0, 20.0, 30.0]}
    assert [target.met for target in prompts.targets(4_096, found | refused)] == [True, True, False]
    rows = prompts.table("", found | refused).rows
    assert [list(row[3:]) for row in rows] == [["", ""], ["", ""], ["1.00", ""], ["", "2.0"], ["", "21.0"]]
