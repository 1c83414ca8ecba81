"""CTranslate2 with the same model, in the virtual environment of the peers: what a user of a CPU would pick."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import ctranslate2  # type: ignore[import-not-found]  # it is in that environment alone
from ctranslate2.converters import TransformersConverter  # type: ignore[import-not-found]

from benchmarks.llm.orders import Answer, serve

ENDS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
"""The checkpoint has none, which CTranslate2 cannot read; these are not in its vocabulary."""


class CTranslate2:
    """The peer in float32, on all cores, greedy."""

    def __init__(self, folder: str) -> None:
        converted = Path("converted").absolute()  # in the peer's own folder
        TransformersConverter(folder).convert(str(converted))
        config = converted / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | ENDS))
        self._words: list[str] = json.loads((converted / "vocabulary.json").read_text())
        cores = len(os.sched_getaffinity(0))
        self._model = ctranslate2.Generator(str(converted), compute_type="float32", intra_threads=cores)

    def generate(self, slots: int, start: int, steps: int) -> Answer:
        """When it began, and the instants at which all texts had one token more, after a prompt of `start` tokens."""
        words = len(self._words)
        prompts = [[(text * start + place) % words for place in range(start)] for text in range(slots)]
        instants: dict[int, float] = {}

        def note(result: ctranslate2.GenerationStepResult) -> bool:
            instants[result.step] = time.perf_counter()
            return False

        began = time.perf_counter()
        self._generate(prompts, steps, callback=note)
        return {"began": began, "instants": [instants[step] for step in sorted(instants)]}

    def text(self, prompt: list[int], tokens: int) -> Answer:
        [result] = self._generate([prompt], tokens)
        return {"ctranslate2": result.sequences_ids[0]}

    def _generate(self, prompts: list[list[int]], tokens: int, **options: object) -> list[ctranslate2.GenerationResult]:
        results: list[ctranslate2.GenerationResult] = self._model.generate_batch(
            [[self._words[id] for id in prompt] for prompt in prompts],
            min_length=tokens,
            max_length=tokens,
            include_prompt_in_result=False,
            end_token=[],
            **options,
        )
        return results


if __name__ == "__main__":
    peer = CTranslate2(sys.argv[1])
    serve({"generate": peer.generate, "text": peer.text})
