"""Answers of sentence-transformers for the checkpoints of `checkpoints.py`, written to goldens.json.

Run it from the root of the project where torch and sentence-transformers are installed:
python -m tests.llm.classification.make_goldens
"""

from __future__ import annotations

import importlib
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.llm.classification.checkpoints import CLASSES, OTHERS, PAIRS, write_classifier
from tests.llm.classification.decoders import (
    ANSWERING,
    CONFIGS,
    TEMPLATE,
    write_answering,
    write_decoder,
)

CUT = [("the cat sat", "a dog " * 20), ("a mat", "cat")]
GOLDENS = Path(__file__).with_name("goldens.json")


def goldens(
    made: Path, *, segments: bool = False, texts: bool = True, pairs: Any = PAIRS, most: int = 72
) -> dict[str, Any]:
    torch = importlib.import_module("torch")
    encoder = importlib.import_module("sentence_transformers").CrossEncoder(str(made), device="cpu")
    kind = importlib.import_module("transformers").PreTrainedTokenizerFast
    encoder[0].processor = kind.from_pretrained(made)  # not the one of the family, which some read from other files
    encoder.max_seq_length = most
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if segments else [])]
    encoder.tokenizer.model_input_names = names
    identity = torch.nn.Identity()
    rows = {"scores": encoder.predict(pairs), "logits": encoder.predict(pairs, activation_fn=identity)}
    if texts:
        asked = encoder.tokenizer(OTHERS, padding=True, return_tensors="pt")
        rows["texts"] = encoder.model(**asked).logits.detach().numpy()
    return {
        name: [[round(float(one), 6) for one in values.reshape(-1)] for values in array] for name, array in rows.items()
    }


def of_encoders(root: Path) -> dict[str, Any]:
    made = {}
    for kind in CLASSES:
        for name, reranks in (("rerank", True), ("classify", False)):
            folder = write_classifier(root / f"{kind}-{name}", kind, reranks=reranks)
            made[f"{kind}-{name}"] = goldens(folder, segments=kind == "bert")
    return made


def of_decoders(root: Path) -> dict[str, Any]:
    """With a head for labels, with and without a template; and by the logits of two words."""
    made = {}
    for kind in CONFIGS:
        for name, reranks in (("rerank", True), ("classify", False)):
            made[f"{kind}-{name}"] = goldens(write_decoder(root / f"{kind}-{name}", kind, reranks=reranks))
    templated = write_decoder(root / "templated", "qwen3")
    (templated / "chat_template.jinja").write_text(TEMPLATE)
    made["qwen3-templated"] = goldens(templated, texts=False)
    for kind in ANSWERING:
        made[kind] = goldens(write_answering(root / kind, kind), texts=False)
    made["qwen3_tied-module"] = goldens(write_answering(root / "module", "qwen3_tied", module=True), texts=False)
    made["qwen3_tied-cut"] = goldens(root / "qwen3_tied", texts=False, pairs=CUT, most=32)
    return made


def main() -> None:
    with tempfile.TemporaryDirectory() as temp:
        made = of_encoders(Path(temp)) | of_decoders(Path(temp))
    GOLDENS.write_text(json.dumps(made, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
