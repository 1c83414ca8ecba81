"""How byte-level tokenizers divide a text into words, by the name that the converter gives each (`tokenizer.ggml.pre`).

The expressions are those of the models' own tokenizer.json.
"""

from dataclasses import dataclass
from typing import Any

from msx_core.gguf.errors import GgufError

Part = dict[str, Any]

_SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
LLAMA3 = rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}"
QWEN2 = rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}"
TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class PreTokenizer:
    """`pattern`: None for GPT-2's own; `whole`: a word that is a token is not made of merges; `begins`: texts begin
    with a token where the file does not say."""

    pattern: str | None = None
    digits: bool = False
    composed: bool = False
    whole: bool = False
    begins: bool = False

    @property
    def normalizer(self) -> Part | None:
        return {"type": "NFC"} if self.composed else None

    @property
    def part(self) -> Part:
        """The member `pre_tokenizer` of tokenizer.json."""
        parts: list[Part] = [{"type": "Digits", "individual_digits": True}] if self.digits else []
        if self.pattern is not None:
            split = {"type": "Split", "pattern": {"Regex": self.pattern}, "behavior": "Isolated", "invert": False}
            parts.append(split)
        level = {"add_prefix_space": False, "trim_offsets": True, "use_regex": self.pattern is None}
        return {"type": "Sequence", "pretokenizers": [*parts, {"type": "ByteLevel", **level}]}


_LLAMA3 = PreTokenizer(LLAMA3, whole=True, begins=True)
_QWEN2 = PreTokenizer(QWEN2, composed=True)
_DIGITS = PreTokenizer(digits=True)
KNOWN = {
    "gpt-2": PreTokenizer(),
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "tekken": PreTokenizer(TEKKEN, whole=True, begins=True),
}


def pre_tokenizer(name: str) -> PreTokenizer:
    """Raises GgufError for one that is not known."""
    if (found := KNOWN.get(name)) is None:
        raise GgufError(
            f"tokenizer.ggml.pre: {name[:40]} is not known; {', '.join(KNOWN)} are: put the tokenizer.json of the "
            "model's hub beside the file, or give it by --extra-files"
        )
    return found
