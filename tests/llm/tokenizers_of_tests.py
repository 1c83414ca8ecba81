"""Small tokenizers of each kind that models come with."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

EXAMPLE = Path(__file__).parents[2] / "examples/llama"
SPECIAL = ["<unk>", "<s>", "</s>"]
MERGES = [("▁", "a"), ("▁", "{"), ("{", '"'), ("▁", "▁"), ("y", "e"), ("ye", "s"), ("▁", "yes")]


def byte_level() -> Tokenizer:
    """Tokenizer of GPT-2's kind: every byte a token of its own, and a few merged ones; `<|end|>` is 262."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("y", "e"), ("ye", "s"), ("Ġ", "a"), ("ð", "Ł"), ("Ã", "©")]
    vocab = {text: id for id, text in enumerate([*letters, *(left + right for left, right in merges)])}
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(["<think>"])
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def pieces(legacy: bool = True) -> Tokenizer:
    """Tokenizer of Llama 2's kind: `▁` is a space, other characters may be bytes `<0xE2>`. `<s>` is 1, `</s>` is 2."""
    letters = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *map(chr, range(33, 127))]
    vocab = {text: id for id, text in enumerate([*letters, *(left + right for left, right in MERGES)])}
    tokenizer = Tokenizer(models.BPE(vocab, MERGES, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    if legacy:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        strip = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        tokenizer.decoder = decoders.Sequence(strip)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def word_pieces() -> Tokenizer:
    """Tokenizer of BERT's kind; no model that generates has it."""
    words = ["[UNK]", "[CLS]", "[SEP]", "play", "##ing", "the", "."]
    tokenizer = Tokenizer(models.WordPiece({word: id for id, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]"])
    return tokenizer
