"""The vectors that sentence-transformers makes with the models of `packed.py`, written to packed.json.

Run it from the root of the project where torch and sentence-transformers are installed:
python -m tests.llm.embedding.make_packed_goldens
"""

from __future__ import annotations

import importlib
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.llm.embedding.packed import PACKED, PROMPTS, TEXTS, write_packed

GOLDENS = Path(__file__).with_name("packed.json")


def goldens(folder: Path) -> dict[str, Any]:
    """By the name of the prompt; "" for none."""
    model = importlib.import_module("sentence_transformers").SentenceTransformer(str(folder), device="cpu")
    kind = importlib.import_module("transformers").PreTrainedTokenizerFast
    model[0].processor = kind.from_pretrained(folder)  # not the one of the family, which some read from other files
    made = {name: model.encode(TEXTS, prompt_name=name or None) for name in ["", *PROMPTS]}
    return {name: [[round(float(it), 6) for it in row] for row in rows] for name, rows in made.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as temp:
        made = {kind: goldens(write_packed(Path(temp) / kind, kind)) for kind in PACKED}
    GOLDENS.write_text(json.dumps(made, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
