"""The settings of sentence-transformers: how a network's states become one vector, and how long a text may be."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from msx_core.input_prompts import NO_PROMPTS, InputPrompts, read_prompts
from msx_core.tokenizer_files import read_object
from msx_llm.embedding.config import ENCODERS
from msx_llm.embedding.dense import Dense, read_dense
from msx_llm.embedding.pooling import Array, Mode, Pooling, normalized, read_pooling
from msx_sdk.errors import HandlerLoadError

MODULES = "modules.json"
_PASSES = ("Dropout",)
"""Modules that have no effect when a model is served."""


class EmbeddingOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The section `embedding:` of model-config.yaml, which overrides the model's own files."""

    pooling: Mode | None = None
    normalize: bool | None = None


@dataclass(frozen=True)
class Sentence:
    """`folder` holds the network and its tokenizer. `longest` is in tokens, None where the network alone decides."""

    folder: Path
    pooling: Pooling
    dense: tuple[Dense, ...] = ()
    normalize: bool = True
    longest: int | None = None
    lower_case: bool = False
    prompts: InputPrompts = NO_PROMPTS

    def size(self, hidden: int) -> int:
        """The size of an embedding, for states of the given size."""
        return self.dense[-1].size if self.dense else hidden * len(self.pooling.modes)

    def vectors(self, sums: Array, largest: Array) -> Array:
        """The network's sums → [texts, size], of any length"""
        vectors = self.pooling.join(sums, largest)
        for dense in self.dense:
            vectors = dense(vectors)
        return vectors

    def finish(self, vector: Array, dimensions: int | None = None, normalize: bool | None = None) -> Array:
        """One of them as a request wants it; None: as the model has it."""
        wanted = dimensions is not None or (self.normalize if normalize is None else normalize)
        return normalized(vector[:dimensions]) if wanted else vector


def read_sentence(root: Path, options: EmbeddingOptions) -> Sentence:
    """The model in `root` with its modules. Without `modules.json` an encoder's vector is the mean of all states, a
    decoder's the last one, and its length is 1. Raises HandlerLoadError for modules that are not known."""
    modules = [(kind, root / place) for kind, place in _modules(root)]
    folder = _place(modules, "Transformer") or root
    limits = read_object(folder, "sentence_bert_config.json")
    return Sentence(
        folder=folder,
        pooling=Pooling((options.pooling,)) if options.pooling else _pooling(modules, folder),
        dense=tuple(read_dense(place) for kind, place in modules if kind == "Dense"),
        normalize=_normalizes(modules) if options.normalize is None else options.normalize,
        longest=limits.get("max_seq_length"),
        lower_case=limits.get("do_lower_case") is True,
        prompts=read_prompts(root, pooled=_pools_prompts(modules)),
    )


def module_place(root: Path, wanted: str) -> Path | None:
    """The folder of a module that the model's files name. Raises HandlerLoadError."""
    return _place([(kind, root / place) for kind, place in _modules(root, wanted)], wanted)


def _modules(root: Path, *further: str) -> list[tuple[str, str]]:
    """Kind and folder of each, such as ("Pooling", "1_Pooling")."""
    if not (root / MODULES).is_file():
        return []
    try:
        listed: list[dict[str, Any]] = json.loads((root / MODULES).read_bytes())
        modules = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in listed]
    except (ValueError, KeyError, TypeError):
        raise HandlerLoadError(f"{MODULES} is not a list of modules with a type and a path each") from None
    known = ("Transformer", "Pooling", "Dense", "Normalize", *_PASSES, *further)
    for kind, _ in modules:
        if kind not in known:
            raise HandlerLoadError(f"{MODULES} has a module {kind}; known are {', '.join(known)}")
    return modules


def _place(modules: list[tuple[str, Path]], wanted: str) -> Path | None:
    return next((place for kind, place in modules if kind == wanted), None)


def _pools_prompts(modules: list[tuple[str, Path]]) -> bool:
    place = _place(modules, "Pooling")
    return place is None or read_object(place, "config.json").get("include_prompt") is not False


def _pooling(modules: list[tuple[str, Path]], folder: Path) -> Pooling:
    place = _place(modules, "Pooling")
    if place is not None:
        return read_pooling(read_object(place, "config.json"))
    return Pooling(("mean" if read_object(folder, "config.json").get("model_type") in ENCODERS else "last",))


def _normalizes(modules: list[tuple[str, Path]]) -> bool:
    return not modules or any(kind == "Normalize" for kind, _ in modules)
