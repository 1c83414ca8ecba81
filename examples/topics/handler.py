"""Tells the topic of texts. A request is {"texts": ["…", …]}, checked before it gets here."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from tokens import Vocabulary

from msx_sdk import Context, Handler, InvalidInput
from msx_sdk.mindspore import Network, load_network, setup

MOST = 64
"""Texts of one request."""


@dataclass
class Texts:
    texts: list[str]


@dataclass
class Topic:
    topic: str
    scores: dict[str, float]


@dataclass
class Topics:
    topics: list[Topic]


class TopicHandler(Handler):
    example = Texts(["the striker won the match"])
    packed_with = ("--serialized-file", "vocabulary.json", "topics.json")
    network: Network

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        setup(context)
        self.network = load_network(context)
        self.vocabulary = Vocabulary.load(context.model_dir / "vocabulary.json")
        self.names: list[str] = json.loads((context.model_dir / "topics.json").read_text())

    def inference(self, inputs: list[Texts]) -> list[Topics]:
        """All texts of all requests of a batch go through the network at once. A wrong request fails alone."""
        answers: list[Any] = [wrong(request, self.vocabulary) for request in inputs]
        right = [request for request, error in zip(inputs, answers, strict=True) if error is None]
        if not right:
            return answers
        (rows,) = self.network([self.vocabulary.encode(text for request in right for text in request.texts)])
        found = iter(rows)
        for place, request in enumerate(inputs):
            if answers[place] is None:
                answers[place] = Topics([self.topic(next(found)) for _ in request.texts])
        return answers

    def topic(self, row: np.ndarray[Any, Any]) -> Topic:
        scores = {name: round(float(score), 4) for name, score in zip(self.names, row, strict=True)}
        return Topic(self.names[int(row.argmax())], scores)


def wrong(request: Texts, vocabulary: Vocabulary) -> InvalidInput | None:
    if not 1 <= len(request.texts) <= MOST:
        return InvalidInput(f"texts: expected 1 to {MOST} texts, got {len(request.texts)}")
    for place, text in enumerate(request.texts):
        if not vocabulary.knows(text):
            return InvalidInput(f"texts[{place}]: the model knows no word of {text[:40]!r}")
    return None
