"""`ts.torch_handler.contractions`: short forms of English, and what they stand for."""

from collections.abc import Iterator

_AUXILIARIES = [
    "are",
    "could",
    "did",
    "do",
    "does",
    "had",
    "has",
    "have",
    "is",
    "might",
    "must",
    "need",
    "ought",
    "should",
    "was",
    "were",
    "would",
]
_IRREGULAR = {
    "ain't": "is not",
    "can't": "cannot",
    "shan't": "shall not",
    "won't": "will not",
    "let's": "let us",
    "y'all": "you all",
}
_ENDINGS = {"'ll": "will", "'d": "would", "'ve": "have"}
_SUBJECTS = [
    "I",
    "you",
    "he",
    "she",
    "it",
    "we",
    "they",
    "that",
    "there",
    "this",
    "what",
    "who",
    "how",
    "where",
    "when",
    "why",
]
_SINGULAR = ["he", "she", "it", "that", "there", "this", "what", "who", "how", "where", "when", "why"]
_MODALS = ["could", "might", "must", "should", "would"]


def _pairs() -> Iterator[tuple[str, str]]:
    yield from _IRREGULAR.items()
    for verb in _AUXILIARIES:
        yield f"{verb}n't", f"{verb} not"
    for subject in _SUBJECTS:
        for ending, word in _ENDINGS.items():
            yield f"{subject}{ending}", f"{subject} {word}"
    for subject in _SINGULAR:
        yield f"{subject}'s", f"{subject} is"
    for subject in ("you", "we", "they", "who", "what", "there"):
        yield f"{subject}'re", f"{subject} are"
    for verb in _MODALS:
        yield f"{verb}'ve", f"{verb} have"
        yield f"{verb}n't've", f"{verb} not have"
    yield "I'm", "I am"


CONTRACTION_MAP = dict(_pairs())
