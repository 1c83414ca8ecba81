"""Answers of the routes of jobs, to the byte: a file for all cases of test_both_ways.py and of raw_requests.py.

    python -m tests.contract.http_goldens

rewrites it. Its first version was written by a server that answered through ASGI; two answers have had their header
fields in the order of all other predictions since.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from pathlib import Path
from typing import Any

import msgspec

FILE = Path(__file__).parent / "http_goldens.json"
LONGEST = 400
"""Bytes of a body that stands in the file; of a longer one its digest does."""

Answer = tuple[int, str, list[Any], bytes]
"""Status, phrase, headers and body."""


class Goldens(msgspec.Struct):
    """Number of the answer to each ask, by case: most answers are given often."""

    answers: list[str]
    cases: dict[str, dict[str, int]]

    def add(self, case: str, ask: str, text: str) -> None:
        if text not in self.answers:
            self.answers.append(text)
        self.cases.setdefault(case, {})[ask] = self.answers.index(text)

    def of(self, case: str) -> dict[str, str]:
        return {ask: self.answers[number] for ask, number in self.cases[case].items()}


def golden(answer: Answer) -> str:
    """An answer as text."""
    status, phrase, headers, body = answer
    lines = [f"{status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    told = body.decode("latin-1") if len(body) <= LONGEST else f"sha256 {hashlib.sha256(body).hexdigest()}"
    return "\n".join([*lines, "", told])


def goldens(case: str) -> dict[str, str]:
    """The answers of a case, by ask."""
    return msgspec.json.decode(FILE.read_bytes(), type=Goldens).of(case)


async def made() -> Goldens:
    from tests.contract.test_both_ways import CASES, RAW, answers, key_of, raw_answers

    found = Goldens([], {})
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            for ask, for_a_job, answer, _ in await answers(Path(folder) / "one", case):
                if for_a_job:
                    found.add(name, key_of(ask), golden(answer))
    for name, key in RAW.items():
        with tempfile.TemporaryDirectory() as folder:
            for request, text in (await raw_answers(Path(folder) / "one", key)).items():
                found.add(name, request, text)
    return found


if __name__ == "__main__":
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(asyncio.run(made())), indent=1) + b"\n")
