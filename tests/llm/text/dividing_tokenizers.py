"""Small trained tokenizers of every kind whose texts are tokenized in pieces."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from tests.llm.tokenizers_of_tests import pieces

WORDS = (
    "the cat sat on a mat and The CAT's dogs don't e\u0301te\u0301 café 12 345,678 x=y(z); naïve 東京 です\r\n\n  --> "
    "!? \ufb01ne I'll"
)
CORPUS = [f"{WORDS} {WORDS.swapcase()} {WORDS[::-1]}"] * 4
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
)


def gpt2(**options: Any) -> Tokenizer:
    return bytes_of(pre_tokenizers.ByteLevel(**{"add_prefix_space": False, **options}))


def splitting(*patterns: str, normalizer: Any = None) -> Tokenizer:
    splits: list[Any] = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return bytes_of(pre_tokenizers.Sequence([*splits, last]), normalizer)


def bytes_of(pre_tokenizer: Any, normalizer: Any = None) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=letters, special_tokens=["<s>", "<|im_end|>"], show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_tokens(["<think>", "\n\n"])
    return tokenizer


def unigram() -> Tokenizer:
    """A tokenizer of T5's and XLM-RoBERTa's kind."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def bert(lowercase: bool = True) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def whole_words() -> Tokenizer:
    """Words that are tokens are found before any merge, as by Llama 3; digits stand alone."""
    split = pre_tokenizers.Split(Regex(LLAMA3), "removed", invert=True)
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = bytes_of(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split, last]))
    tokenizer.model.ignore_merges = True
    return tokenizer


def split_unigram() -> Tokenizer:
    tokenizer = unigram()
    parts: list[Any] = [normalizers.Nmt(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    tokenizer.normalizer = normalizers.Sequence(parts)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation(), pre_tokenizers.Metaspace()]
    )
    return tokenizer


def gemma() -> Tokenizer:
    tokenizer = pieces(legacy=False)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return tokenizer


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "gpt2": gpt2,
    "gpt2 with a space first": lambda: gpt2(add_prefix_space=True),
    "llama3": lambda: splitting(LLAMA3),
    "qwen": lambda: splitting(LLAMA3.replace("{1,3}", ""), normalizer=normalizers.NFC()),
    "o200k": lambda: splitting(O200K),
    "deepseek": lambda: splitting(*DEEPSEEK),
    "llama2": pieces,
    "llama2, newer": lambda: pieces(legacy=False),
    "gemma": gemma,
    "whole words": whole_words,
    "unigram": unigram,
    "unigram, split": split_unigram,
    "bert": bert,
    "bert, cased": lambda: bert(lowercase=False),
}


@cache
def tokenizer_of(kind: str) -> Tokenizer:
    return KINDS[kind]()
