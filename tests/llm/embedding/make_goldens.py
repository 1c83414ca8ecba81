"""Answers of Hugging Face transformers for the checkpoints of `checkpoints.py`, written to goldens.json.

Run it from the root of the project where torch and transformers are installed:
python -m tests.llm.embedding.make_goldens
"""

from __future__ import annotations

import importlib
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.llm.embedding.checkpoints import CONFIGS, VOCABULARY, write_checkpoint

GOLDENS = Path(__file__).with_name("goldens.json")


def texts(kind: str) -> list[list[int]]:
    """Token ids of a short text, of one that fills a bucket, and of the longest."""
    config = CONFIGS[kind]
    longest = config["max_position_embeddings"] - (2 if kind == "roberta" else 0)
    return [
        [5 + (3 * place * place + size) % (len(VOCABULARY) - 5) for place in range(size)] for size in (5, 32, longest)
    ]


def poolings(states: Any) -> dict[str, Any]:
    """states [tokens, hidden] of one text, by sentence-transformers' modes."""
    size = len(states)
    rising = states.new_tensor(range(1, size + 1))[:, None]
    return {
        "cls": states[0],
        "max": states.max(0).values,
        "mean": states.mean(0),
        "mean_sqrt_len_tokens": states.sum(0) / size**0.5,
        "weightedmean": (states * rising).sum(0) / rising.sum(),
        "last": states[-1],
    }


def goldens(folder: Path) -> list[dict[str, Any]]:
    torch, hf = importlib.import_module("torch"), importlib.import_module("transformers")
    model = hf.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    found = []
    for ids in texts(folder.name):
        with torch.no_grad():
            states = model(torch.tensor([ids])).last_hidden_state[0]
        rounded = {mode: [round(value, 6) for value in vector.tolist()] for mode, vector in poolings(states).items()}
        found.append({"ids": ids, "vectors": rounded})
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as temp:
        made = {kind: goldens(write_checkpoint(Path(temp) / kind, kind)) for kind in CONFIGS}
    GOLDENS.write_text(json.dumps(made, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
