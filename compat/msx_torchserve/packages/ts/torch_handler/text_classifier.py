"""`ts.torch_handler.text_classifier`: the probabilities of a text's classes."""

from typing import Any

from msx_sdk import InvalidInput

from .._extras import need
from ..handler_utils.text_utils import ngrams_iterator
from ..utils.util import map_class_to_label
from ._copies import to_device
from ._insights import layer_gradients
from .base_handler import results
from .text_handler import TextHandler


class TextClassifier(TextHandler):
    """Serves models that take all tokens of a batch and the place where each text begins, such as an `EmbeddingBag`.

    TorchServe's takes one text a call; this one takes as many as the batch has.
    """

    overlap = True
    ngrams = 2

    def preprocess(self, data: Any) -> tuple[Any, Any]:
        """The tokens' numbers, and the offsets of the texts."""
        torch = need("torch")
        rows = [self._numbers(_text(row)) for row in data]
        offsets = torch.as_tensor([0, *(len(row) for row in rows)][:-1]).cumsum(dim=0)
        tokens = torch.as_tensor([number for row in rows for number in row])
        return to_device(tokens, self.device), to_device(offsets, self.device)

    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        tokens, offsets = data
        return super().inference(tokens, offsets)

    def postprocess(self, data: Any) -> list[dict[Any, float]]:
        return map_class_to_label(results(data, self, TextClassifier).tolist(), self.mapping)

    def _reduced(self, data: Any) -> Any:
        return need("torch").nn.functional.softmax(data, dim=1)

    def get_insights(self, text_preprocess: Any, _: Any, target: Any = 0) -> list[dict[str, Any]]:
        """The tokens of the first text and what each counts for `target`; the model's layer must be `embedding`."""
        tokens, offsets = text_preprocess
        importances = layer_gradients(self.model, self.model.embedding, tokens, offsets, target)
        return [{"words": self.get_word_token(tokens), "importances": importances.tolist(), "delta": 0.0}]

    def _numbers(self, text: str) -> list[int]:
        text = self._remove_html_tags(text).lower()
        text = self._remove_accented_characters(self._expand_contractions(text))
        tokens = self._tokenize(self._remove_punctuation(text))
        return [self._number(token) for token in ngrams_iterator(tokens, self.ngrams)]

    def _number(self, token: str) -> int:
        """The number of a word. For an unknown word in a plain dict, it is the number of `<unk>`."""
        known = not isinstance(self.source_vocab, dict) or token in self.source_vocab
        return int(self.source_vocab[token] if known else self.source_vocab.get("<unk>", 0))


def _text(row: Any) -> str:
    value = row.get("data") or row.get("body")
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(f"data: not UTF-8: {error}") from None
    if not isinstance(value, str):
        raise InvalidInput(f"data: expected text, got {type(value).__name__}")
    return value
