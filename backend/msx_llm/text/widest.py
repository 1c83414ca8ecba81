"""The most text that one token stands for: a text that is longer than so many of them need not be tokenized."""

from __future__ import annotations

from dataclasses import dataclass

from msx_llm.text.divides import Part, flat
from msx_llm.text.vocabulary import ALPHABET

FORMS = {"NFC", "NFD", "NFKC", "NFKD"}
"""Normal forms of Unicode, which change no ASCII."""
KEEPING = {"ByteLevel", "Digits"}
"""They divide a text and leave nothing out."""


@dataclass(frozen=True)
class WidestToken:
    """`size` bytes of UTF-8; 0 if no such number is known. `ascii`: it is known of ASCII alone."""

    size: int
    ascii: bool

    @classmethod
    def of(cls, tokenizer: Part) -> WidestToken:
        """`tokenizer`: the content of tokenizer.json. A number is known of byte-level BPE that changes no text, which
        shows every byte in some token."""
        normalizers = [it["type"] for it in flat(tokenizer.get("normalizer"), "normalizers")]
        added = tokenizer.get("added_tokens") or ()
        known = _keeps_bytes(tokenizer) and {*normalizers} <= FORMS
        if not known or any(it["lstrip"] or it["rstrip"] for it in added):
            return cls(0, False)
        sizes = [*map(len, tokenizer["model"]["vocab"]), *(len(it["content"].encode()) for it in added)]
        return cls(max(sizes), bool(normalizers))

    def least(self, text: str) -> int:
        """The fewest tokens that the text can have."""
        if not self.size or (self.ascii and not text.isascii()):
            return 0
        size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
        return -(-size // self.size)


def _keeps_bytes(tokenizer: Part) -> bool:
    model, parts = tokenizer["model"], [*flat(tokenizer.get("pre_tokenizer"), "pretokenizers")]
    if model["type"] != "BPE" or not parts or parts[-1]["type"] != "ByteLevel":
        return False
    keeps = all(it["type"] in KEEPING or (it["type"] == "Split" and it["behavior"] == "Isolated") for it in parts)
    return keeps and ALPHABET.keys() <= model["vocab"].keys()
