"""What sentence-transformers makes of the checkpoints of `checkpoints.py`, written to goldens.json.

Run it from the root of the project where torch and sentence-transformers are installed:
python -m tests.unit.backend.llm.classification.make_goldens
"""

from __future__ import annotations

import importlib
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.unit.backend.llm.classification.checkpoints import CLASSES, OTHERS, PAIRS, write_classifier

GOLDENS = Path(__file__).with_name("goldens.json")


def goldens(folder: Path, kind: str, *, reranks: bool) -> dict[str, Any]:
    torch = importlib.import_module("torch")
    made = write_classifier(folder, kind, reranks=reranks)
    encoder = importlib.import_module("sentence_transformers").CrossEncoder(str(made), device="cpu")
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if kind == "bert" else [])]
    encoder.tokenizer.model_input_names = names
    identity = torch.nn.Identity()
    rows = {"scores": encoder.predict(PAIRS), "logits": encoder.predict(PAIRS, activation_fn=identity)}
    rows["texts"] = (
        encoder.model(**encoder.tokenizer(OTHERS, padding=True, return_tensors="pt")).logits.detach().numpy()
    )
    return {
        name: [[round(float(one), 6) for one in values.reshape(-1)] for values in array] for name, array in rows.items()
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as temp:
        made = {
            f"{kind}-{'rerank' if reranks else 'classify'}": goldens(
                Path(temp) / f"{kind}{reranks}", kind, reranks=reranks
            )
            for kind in CLASSES
            for reranks in (True, False)
        }
    GOLDENS.write_text(json.dumps(made, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
