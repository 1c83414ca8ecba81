"""Small random checkpoints with heads, made of those of the encoders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.llm.embedding.checkpoints import HIDDEN, Arrays, Random, encoder_tensors, write_checkpoint

CLASSES = {
    "bert": "BertForSequenceClassification",
    "roberta": "RobertaForSequenceClassification",
    "distilbert": "DistilBertForSequenceClassification",
}
LABELS = {"good": 0, "bad": 1, "neither": 2}
LAYERS = {
    "bert": ("bert.pooler.dense", "classifier"),
    "roberta": ("classifier.dense", "classifier.out_proj"),
    "distilbert": ("pre_classifier", "classifier"),
}
PAIRS = [("the cat sat", "on a mat"), ("a dog", "the cats sat on the mat with a statement"), ("cat", "cat")]
OTHERS = ["the cat sat on a mat", "dogs", "the with statement"]
RERANKS = {"num_labels": 1, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
CLASSIFIES = {"id2label": {str(number): label for label, number in LABELS.items()}, "label2id": LABELS}


def headed_tensors(kind: str, labels: int) -> Arrays:
    random = Random()
    tensors = {f"{kind}.{name}": array for name, array in encoder_tensors(kind).items()}
    for name, size in zip(LAYERS[kind], (HIDDEN, labels), strict=True):
        tensors |= {f"{name}.weight": random.weight((size, HIDDEN)), f"{name}.bias": random.bias(size)}
    return tensors


def write_classifier(folder: Path, kind: str = "bert", *, reranks: bool = False, **config: Any) -> Path:
    """A model of one label that reranks, or of three labels; returns the folder."""
    labels = RERANKS if reranks else CLASSIFIES
    tensors = headed_tensors(kind, 1 if reranks else len(LABELS))
    write_checkpoint(folder, kind, tensors, architectures=[CLASSES[kind]], **{**labels, **config})
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER))
    return folder


TOKENIZER = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "model_max_length": 72}
