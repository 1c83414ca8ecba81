"""Trains a small transformer to tell the topic of a sentence, and exports it as a MindIR for any number of texts."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms
import numpy as np
from corpus import TOPICS, sentences
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer
from tokens import LENGTH, PADDING, Vocabulary

Array = np.ndarray[Any, Any]
WIDTH, HEADS = 32, 4


class Block(nn.Cell):
    """Attention over the words of a text, then a feed-forward layer, each added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.second_norm = nn.LayerNorm([WIDTH]), nn.LayerNorm([WIDTH])
        self.query, self.key, self.value = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)
        self.output = nn.Dense(WIDTH, WIDTH)
        self.inner, self.outer = nn.Dense(WIDTH, 2 * WIDTH), nn.Dense(2 * WIDTH, WIDTH)
        self.scores, self.mix, self.softmax = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul(), ops.Softmax(-1)
        self.relu = ops.ReLU()

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        """x [texts, LENGTH, WIDTH], mask [texts, 1, 1, LENGTH]: 0, or a large negative number for padding"""
        y = self.norm(x)
        q, k, v = self.heads(self.query(y)), self.heads(self.key(y)), self.heads(self.value(y))
        weights = self.softmax(self.scores(q, k) * (WIDTH // HEADS) ** -0.5 + mask)
        mixed = self.mix(weights, v).transpose((0, 2, 1, 3)).reshape((-1, LENGTH, WIDTH))
        x = x + self.output(mixed)
        return x + self.outer(self.relu(self.inner(self.second_norm(x))))

    def heads(self, x: Tensor) -> Tensor:
        """[texts, LENGTH, WIDTH] → [texts, HEADS, LENGTH, WIDTH / HEADS]"""
        return x.reshape((-1, LENGTH, HEADS, WIDTH // HEADS)).transpose((0, 2, 1, 3))


class TopicNet(nn.Cell):
    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, WIDTH)
        self.places = Parameter(initializer("normal", (LENGTH, WIDTH)), name="places")
        self.first, self.second = Block(), Block()
        self.answer = nn.Dense(WIDTH, len(TOPICS))
        self.softmax = ops.Softmax(-1)

    def construct(self, ids: Tensor) -> Tensor:
        """ids [texts, LENGTH] int32 → probabilities [texts, topics]"""
        return self.softmax(self.logits(ids))

    def logits(self, ids: Tensor) -> Tensor:
        seen = (ids != PADDING).astype(ms.float32)
        mask = (seen.reshape((-1, 1, 1, LENGTH)) - 1) * 1e9
        x = self.second(self.first(self.words(ids) + self.places, mask), mask)
        seen = seen.reshape((-1, LENGTH, 1))
        mean = (x * seen).sum(1) / (seen.sum(1) + 1e-9)
        return self.answer(mean)


class LogitsNet(nn.Cell):
    """The network without its softmax, for training."""

    def __init__(self, net: TopicNet) -> None:
        super().__init__()
        self.net = net

    def construct(self, ids: Tensor) -> Tensor:
        return self.net.logits(ids)


def train(net: TopicNet, ids: Array, topics: Array, epochs: int = 4, size: int = 32) -> None:
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(LogitsNet(net), loss), nn.Adam(net.trainable_params(), 3e-3))
    step.set_train()
    random = np.random.default_rng(0)
    for epoch in range(1, epochs + 1):
        chosen = random.permutation(len(ids))[: len(ids) // size * size].reshape(-1, size)
        total = sum(float(step(Tensor(ids[batch]), Tensor(topics[batch]))) for batch in chosen)
        print(f"epoch {epoch}/{epochs}  loss {total / len(chosen):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "build")
    folder = parser.parse_args().out
    folder.mkdir(exist_ok=True)
    ms.set_seed(0)
    ms.set_context(mode=ms.GRAPH_MODE)
    texts, topics = zip(*sentences(1000, seed=1), strict=True)
    new_texts, new_topics = zip(*sentences(200, seed=2), strict=True)
    vocabulary = Vocabulary.of(texts)
    net = TopicNet(len(vocabulary))
    train(net, vocabulary.encode(texts), np.array(topics, np.int32))
    net.set_train(False)
    reached = float((net(Tensor(vocabulary.encode(new_texts))).asnumpy().argmax(-1) == np.array(new_topics)).mean())
    print(f"accuracy {reached:.1%} on {len(new_texts)} sentences that training did not see")
    if reached < 0.95:
        raise SystemExit("expected at least 95 %")
    any_number = Tensor(shape=[None, LENGTH], dtype=ms.int32)
    net.set_inputs(any_number)
    ms.export(net, any_number, file_name=str(folder / "topics"), file_format="MINDIR")
    vocabulary.save(folder / "vocabulary.json")
    (folder / "topics.json").write_text(json.dumps(list(TOPICS)) + "\n")


if __name__ == "__main__":
    main()
