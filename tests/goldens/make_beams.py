"""The texts that Hugging Face transformers finds with beams on one of the small checkpoints.

    hf/bin/python tests/goldens/make_beams.py

Rewrites tests/goldens/beams.json; for the environment see make_llm.py.
"""

import json
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

torch: Any = import_module("torch")
transformers: Any = import_module("transformers")

FOLDER = Path(__file__).parent
FAMILY, PROMPT, MOST = "llama", [3, 14, 15, 92, 65, 35], 10
ENDS = ([2], [2, 7, 30, 41], list(range(0, 96, 5)))
"""End tokens of texts: with many of them, beams end all the time."""


def main() -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(FOLDER / "llm" / FAMILY, dtype=torch.float32).eval()
    cases = [
        case(model, width, ends, penalty, early)
        for width, ends, penalty, early in product((1, 2, 4), ENDS, (1.0, 0.0, 2.0), (False, True, "never"))
        if width * (1 + len(ends)) <= 96
    ]
    golden = {"family": FAMILY, "prompt": PROMPT, "most": MOST, "cases": cases}
    (FOLDER / "beams.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


def case(model: Any, width: int, ends: list[int], penalty: float, early: object) -> dict[str, Any]:
    found = model.generate(
        torch.tensor([PROMPT]),
        num_beams=width,
        num_return_sequences=width,
        do_sample=False,
        max_new_tokens=MOST,
        eos_token_id=ends,
        pad_token_id=95,
        length_penalty=penalty,
        early_stopping=early,
        return_dict_in_generate=True,
        output_scores=True,
    )
    texts = [text(row[len(PROMPT) :].tolist(), ends) for row in found.sequences]
    scores = [] if width == 1 else [round(float(score), 5) for score in found.sequences_scores]
    return {"width": width, "ends": ends, "penalty": penalty, "early": early, "texts": texts, "scores": scores}


def text(tokens: list[int], ends: list[int]) -> list[int]:
    """Without padding."""
    return next((tokens[: place + 1] for place, token in enumerate(tokens) if token in ends), tokens)


if __name__ == "__main__":
    main()
