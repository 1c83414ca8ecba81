"""`ts.torch_handler.text_handler`: from text to tokens of a vocabulary."""

import re
import unicodedata
from abc import ABC
from pathlib import Path
from typing import Any

from msx_sdk import HandlerLoadError

from .._extras import need
from ..handler_utils.text_utils import get_tokenizer
from ..utils.util import CLEANUP_REGEX
from ._insights import normalised
from .base_handler import BaseHandler
from .contractions import CONTRACTION_MAP

_LOWER = {short.lower(): long.lower() for short, long in CONTRACTION_MAP.items()}
_CONTRACTIONS = re.compile("|".join(sorted(map(re.escape, _LOWER), key=len, reverse=True)), re.IGNORECASE)


class TextHandler(BaseHandler, ABC):
    """`source_vocab` is what `source_vocab.pt`, or the manifest's `sourceVocab`, holds: token to number."""

    def __init__(self) -> None:
        super().__init__()
        self.source_vocab: Any = None
        self.tokenizer: Any = None

    def initialize(self, context: Any) -> None:
        super().initialize(context)
        path = self.get_source_vocab_path(context)
        # Vocabularies are objects of a library, or dicts; the archive is as trusted as its code.
        self.source_vocab = need("torch").load(path, weights_only=False)
        self.tokenizer = get_tokenizer("basic_english")

    def get_source_vocab_path(self, ctx: Any) -> str:
        """Raises HandlerLoadError if the archive does not have a vocabulary."""
        name = ctx.manifest.get("model", {}).get("sourceVocab") or "source_vocab.pt"
        path = Path(ctx.system_properties["model_dir"]) / name
        if not path.is_file():
            raise HandlerLoadError(f"the vocabulary {name} is not in the archive: add it to --extra-files")
        return str(path)

    def get_word_token(self, input_tokens: Any) -> list[str]:
        """The words of these numbers. Raises HandlerLoadError for a vocabulary without a reverse mapping."""
        vocab = self.source_vocab
        if hasattr(vocab, "get_itos"):
            words = vocab.get_itos()
        elif isinstance(vocab, dict):
            words = {number: word for word, number in vocab.items()}
        else:
            raise HandlerLoadError(f"a vocabulary of type {type(vocab).__name__} does not list its words")
        return [words[number] for number in (int(token) for token in input_tokens)]

    def summarize_attributions(self, attributions: Any) -> Any:
        """One number for each token: the sum over its embedding."""
        return normalised(attributions.sum(dim=2).squeeze(0))

    def _expand_contractions(self, text: str) -> str:
        return _CONTRACTIONS.sub(lambda found: _LOWER[found[0].lower()], text)

    def _remove_accented_characters(self, text: str) -> str:
        return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()

    def _remove_html_tags(self, text: str) -> str:
        return CLEANUP_REGEX.sub("", text)

    def _remove_punctuation(self, text: str) -> str:
        return re.sub(r"[^\w\s]", " ", text)

    _remove_puncutation = _remove_punctuation  # TorchServe's own spelling, which handlers call

    def _tokenize(self, text: str) -> list[str]:
        tokens: list[str] = self.tokenizer(text)
        return tokens
