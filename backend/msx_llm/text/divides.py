"""Proof that a tokenizer makes the same tokens of a text in pieces (`pieces.py`) as of the whole text.

A text is divided between an ASCII letter and one space before another ASCII letter. Each part of a tokenizer is known
here by its name because it neither moves nor joins anything across such a place, and sees the end of a text there as it
sees the space; whatever is not known is taken to do so.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

Part = Mapping[str, Any]

SPACE = "▁"
"""SentencePiece's letter for a space."""
NORMALIZERS = {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "BertNormalizer", "Nmt", "Precompiled"}
"""They change each character, or each cluster of a character and its marks, by itself."""
DIVIDING = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
"""They end a word before every space."""
NEUTRAL = {"Digits", "Punctuation"}
"""They divide at digits and at punctuation alone."""
MODELS = {"BPE", "Unigram", "WordPiece", "WordLevel"}
"""They see one word at a time."""

_UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = {
    r" ?\p{L}+",
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"[^\r\n\p{L}\p{N}]?+\p{L}+",
    r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
}
"""Alternatives of a pattern that take any letter, and end before a space."""
LOWER_WORDS = {rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{end}" for end in ("", f"{_SHORT}?")}
UPPER_WORDS = {rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{end}" for end in ("", f"{_SHORT}?")}
"""The same of words that end with small letters, and of others: together they take any letter."""
OTHERS = {
    *("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", _SHORT, "'(?i:[sdmt]|ll|ve|re)"),
    *(r"\s+(?!\S)", r"\s+", r"\s*[\r\n]+", r"\s*[\r\n]", r"[\r\n]"),
    *(r"\p{N}", r"\p{N}+", r" ?\p{N}+", r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+"),
    *(
        r" ?[^\s\p{L}\p{N}]+",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r" ?[^\s\p{L}\p{N}]++[\r\n]*",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    ),
    *(r" ?[\p{P}\p{S}]+[\r\n]*", r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""),
}
"""Alternatives that take no letter with a space behind it."""
UNSAFE = re.compile(f"^[A-Za-z]|[A-Za-z]$|[A-Za-z][ {SPACE}]|[ {SPACE}][A-Za-z]|^[ {SPACE}]$")
"""Added tokens that could lie across the place, or end at it."""
ACROSS = re.compile(f"[A-Za-z][ {SPACE}]")


def divides(tokenizer: Part) -> bool:
    """`tokenizer`: the content of tokenizer.json."""
    model, normalizers = tokenizer["model"], [*flat(tokenizer.get("normalizer"), "normalizers")]
    if not all(_by_itself(it) for it in normalizers) or not all(map(_safe, tokenizer.get("added_tokens") or ())):
        return False
    if model.get("type") not in MODELS or model.get("dropout"):
        return False
    writes = _writes_spaces(tokenizer)
    parts = flat(tokenizer.get("pre_tokenizer"), "pretokenizers")
    words = [_ends_words(it) for it in parts if not (writes and it.get("pattern") == {"String": " "})]
    if None in words:
        return False
    if any(words):
        return not drops_space(tokenizer)
    return writes and _keeps_apart(model)


def drops_space(tokenizer: Part) -> bool:
    """Whether the space before a piece is put there by the tokenizer itself, as it does before a text."""
    return any(it["type"] == "Prepend" for it in flat(tokenizer.get("normalizer"), "normalizers"))


def flat(part: Part | None, members: str) -> Iterator[Part]:
    if part is None:
        return
    if part["type"] != "Sequence":
        yield part
        return
    for inner in part[members]:
        yield from flat(inner, members)


def _by_itself(normalizer: Part) -> bool:
    kind = normalizer["type"]
    if kind == "Replace":
        return normalizer["pattern"] in ({"String": " "}, {"Regex": " {2,}"})
    return kind in NORMALIZERS or (kind == "Prepend" and normalizer["prepend"] == SPACE)


def _ends_words(pre_tokenizer: Part) -> bool | None:
    """True: a word ends at each place; False: not by this one; None: not known."""
    kind = pre_tokenizer["type"]
    if kind == "ByteLevel":
        return bool(pre_tokenizer.get("use_regex", True))
    if kind == "Metaspace":
        return bool(pre_tokenizer.get("split", True)) if pre_tokenizer["replacement"] == SPACE else None
    if kind == "Split":
        return _pattern_ends_words(pre_tokenizer)
    return True if kind in DIVIDING else False if kind in NEUTRAL else None


def _pattern_ends_words(split: Part) -> bool | None:
    if (split["behavior"], split["invert"]) not in (("Isolated", False), ("Removed", True)):
        return None
    found = {*alternatives(split["pattern"].get("Regex", ""))}
    if not found <= WORDS | LOWER_WORDS | UPPER_WORDS | OTHERS:
        return None
    return bool(found & WORDS or (found & LOWER_WORDS and found & UPPER_WORDS))


def alternatives(pattern: str) -> Iterator[str]:
    """Yield the alternatives of the outermost level of a regular expression."""
    depth, start, inside, escaped = 0, 0, False, False
    for place, letter in enumerate(pattern):
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif inside:
            inside = letter != "]"
        elif letter == "[":
            inside = True
        elif letter == "|" and not depth:
            yield pattern[start:place]
            start = place + 1
        else:
            depth += (letter == "(") - (letter == ")")
    yield pattern[start:]


def _safe(added: Part) -> bool:
    """A token that is looked for before the text is normalized has a space only where it writes one."""
    content = str(added["content"])
    if not added["normalized"]:
        return UNSAFE.search(content.replace(SPACE, "")) is None
    return not any(UNSAFE.search(form) for form in (content, unicodedata.normalize("NFKC", content)))


def _keeps_apart(model: Part) -> bool:
    """Whether no token of a model that sees the whole text as one word lies across the place: then no merge does."""
    if model["type"] != "BPE" or model.get("ignore_merges") or SPACE not in model["vocab"]:
        return False
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        return False
    return not any(ACROSS.search(token) for token in model["vocab"])


def _writes_spaces(tokenizer: Part) -> bool:
    """Whether the model sees every space as SentencePiece's."""
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    normalizers = [*flat(tokenizer.get("normalizer"), "normalizers")]
    kinds = [it["type"] for it in flat(tokenizer.get("pre_tokenizer"), "pretokenizers")]
    return spaces in normalizers or "Metaspace" in kinds
