"""Writes goldens.json with Hugging Face transformers and torch, which the tests do not need:

python -m tests.llm.sampling.make_goldens
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path

from msx_sdk.generation import SamplingParams
from tests.llm.sampling.cases import CASES, SEEN, logits


def main() -> None:
    result = [filtered(number, params) for number, params in enumerate(CASES)]
    Path(__file__).with_name("goldens.json").write_text("[\n" + ",\n".join(map(json.dumps, result)) + "\n]\n")


def filtered(number: int, params: SamplingParams) -> dict[str, float]:
    """Probability by token, of those that are left."""
    torch, hf = importlib.import_module("torch"), importlib.import_module("transformers")
    warpers = [
        hf.RepetitionPenaltyLogitsProcessor(params.repetition_penalty),
        hf.TemperatureLogitsWarper(params.temperature),
        *([hf.TopKLogitsWarper(params.top_k)] if params.top_k else []),
        *([hf.TopPLogitsWarper(params.top_p)] if params.top_p < 1 else []),
        hf.MinPLogitsWarper(params.min_p),
        *([hf.TypicalLogitsWarper(params.typical_p)] if params.typical_p < 1 else []),
    ]
    scores = torch.tensor(logits(number))[None]
    for warper in warpers:
        scores = warper(torch.tensor([SEEN]), scores)
    probabilities = torch.softmax(scores[0].double(), -1).tolist()
    return {str(token): round(value, 7) for token, value in enumerate(probabilities) if value}


if __name__ == "__main__":
    main()
