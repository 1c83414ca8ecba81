"""Services of Mosec's examples as handlers. A model that needs torch, jax or diffusers is a stub."""

from __future__ import annotations

import base64
import io
import os
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from msx_sdk import Handler, PredictionError

UNPROCESSABLE = 422
"""The status of a ValidationError."""


def refused(text: str) -> PredictionError:
    return PredictionError(UNPROCESSABLE, text)


# -- echo --


class Seconds(Handler):
    example = MappingProxyType({"time": 0})

    def inference(self, inputs: Any) -> Any:
        return [self.seconds(row["body"]) for row in inputs]

    def seconds(self, body: Any) -> Any:
        return float(body["time"]) if "time" in body else refused("cannot find key 'time'")


class Sleeps(Handler):
    example = (0, 1e-5, 2e-4)

    def inference(self, inputs: Any) -> Any:
        time.sleep(max(row["body"] for row in inputs))
        return [row["body"] for row in inputs]


class Says(Handler):
    def inference(self, inputs: Any) -> Any:
        return [{"msg": f"sleep {row['body']} seconds"} for row in inputs]


# -- custom_env --


class Device(Handler):
    def inference(self, inputs: Any) -> Any:
        return [{"device": os.environ["SERVICE_DEVICE"], "worker": self.context.worker_id} for _ in inputs]


# -- distil_bert_server_pytorch --


class Tokens(Handler):
    def inference(self, inputs: Any) -> Any:
        return [[len(word) for word in row["body"].decode().split()] for row in inputs]


class Sentiment(Handler):
    example = [[101, 2023, 102] * 5] * 32

    def inference(self, inputs: Any) -> Any:
        for idx in range(len(inputs)):
            self.context.set_response_content_type(idx, "text/plain")
        return [f"positive={sum(row['body']) / 100}" for row in inputs]


# -- embedding --


class Embeddings(Handler):
    def inference(self, inputs: Any) -> Any:
        return [self.answer(row["body"]) for row in inputs]

    def answer(self, asked: Any) -> Any:
        if asked["model"] != "thenlper/gte-base":
            return PredictionError(400, f"the requested model {asked['model']} is not supported by this worker")
        vector: Any = np.array([len(asked["input"]), 0.5], np.float32)
        if asked.get("encoding_format") == "base64":
            vector = base64.b64encode(vector.tobytes()).decode()
        used = {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
        data = [{"object": "embedding", "index": 0, "embedding": vector}]
        return {"object": "list", "data": data, "model": asked["model"], "usage": used}


# -- jax_single_layer --


class Layer(Handler):
    multi_examples = [[{"array": [0, 1, 2]}] * (size + 1) for size in range(8)]

    def initialize(self, context: Any) -> None:
        super().initialize(context)
        self.sizes: list[int] = []

    def inference(self, inputs: Any) -> Any:
        if self.context.is_example():
            self.sizes.append(len(inputs))
        try:
            rows = np.array([row["body"]["array"] for row in inputs])
        except KeyError as error:
            raise refused(f"cannot find key {error}") from error
        return [{"category": int(one > 0), "warm": self.sizes} for one in rows.sum(1)]


# -- monitor --


class Average(Handler):
    def initialize(self, context: Any) -> None:
        super().initialize(context)
        self.counter = context.metrics.counter("inference_result_total", labels=("status", "worker_id"))

    def inference(self, inputs: Any) -> Any:
        numbers = [int(row["body"]["num"]) for row in inputs]
        above = [number >= sum(numbers) / len(numbers) for number in numbers]
        for one in above:
            self.counter.update(status=str(one).lower(), worker_id=str(self.context.worker_id))
        return above


# -- multi_route, type_validation --


@dataclass
class Named:
    bin: bytes
    name: str = "test"


class TypedStart(Handler):
    def inference(self, inputs: list[Named]) -> Any:
        return [one.bin for one in inputs]


class RawStart(Handler):
    def inference(self, inputs: Any) -> Any:
        return [bytes(row["body"]) for row in inputs]


class Length(Handler):
    def inference(self, inputs: Any) -> Any:
        return [{"length": len(row["body"])} for row in inputs]


class PlainLength(Handler):
    def inference(self, inputs: Any) -> Any:
        return [len(row["body"]) for row in inputs]


class Same(Handler):
    def inference(self, inputs: Any) -> Any:
        return [row["body"] for row in inputs]


# -- rerank --


@dataclass
class Question:
    query: str
    docs: list[str]


@dataclass
class Scores:
    scores: list[float]


class Rerank(Handler):
    def inference(self, inputs: list[Question]) -> list[Scores]:
        return [Scores([float(len({*one.query} & {*doc})) for doc in one.docs]) for one in inputs]


# -- resnet50_msgpack --


class Pixels(Handler):
    def inference(self, inputs: Any) -> Any:
        return [self.pixels(row["body"]) for row in inputs]

    def pixels(self, body: Any) -> Any:
        if "image" not in body:
            return refused("cannot find key 'image'")
        return np.frombuffer(body["image"], np.uint8).astype(np.float32)


class Classifies(Handler):
    example = [np.zeros(3, np.float32)] * 16

    def inference(self, inputs: Any) -> Any:
        return [int(row["body"].mean() > 127) for row in inputs]


class Category(Handler):
    def inference(self, inputs: Any) -> Any:
        return [{"category": ("cat", "dog")[row["body"]]} for row in inputs]


# -- segment --


class Segments(Handler):
    def inference(self, inputs: Any) -> Any:
        return [self.mask(row["body"]) for row in inputs]

    def mask(self, body: Any) -> bytes:
        file = io.BytesIO()
        np.save(file, np.load(io.BytesIO(body["image"])).sum(2) > 0)
        return file.getvalue()


# -- server_side_event --


class Text(Handler):
    def inference(self, inputs: Any) -> Any:
        return [row["body"].get("text") or refused("text is required") for row in inputs]


class Events(Handler):
    def inference(self, inputs: Any) -> Any:
        texts = [row["body"] for row in inputs]
        if "fail" in texts:
            self.context.send(["before"] * len(texts))
            raise refused("in the middle")
        for epoch in range(5):
            self.context.send([f"inference: ({epoch + 1}/5) {text}" for text in texts])
        return [None] * len(texts)


# -- shm_ipc --


class Producer(Handler):
    def inference(self, inputs: Any) -> Any:
        return [
            np.arange(int(row["body"]["size"])) / 8 if "size" in row["body"] else refused("'size'") for row in inputs
        ]


class Consumer(Handler):
    def inference(self, inputs: Any) -> Any:
        return [{"ipc test data": row["body"].tolist()} for row in inputs]


# -- stable_diffusion --


class Draws(Handler):
    example = ["useless example prompt"] * 4

    def inference(self, inputs: Any) -> Any:
        return [memoryview(b"\xff\xd8" + row["body"].encode()) for row in inputs]
