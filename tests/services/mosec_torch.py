"""Services of Mosec's examples that need torch, as handlers: its models, of random weights."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import transforms
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from msx_sdk import Handler, PredictionError

UNPROCESSABLE = 422

# -- resnet50_msgpack --


class Pixels(Handler):
    def initialize(self, context: Any) -> None:
        super().initialize(context)
        normal = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
        steps = [transforms.ToTensor(), transforms.Resize((256, 256)), transforms.CenterCrop(224), normal]
        self.transform = transforms.Compose(steps)

    def inference(self, inputs: Any) -> Any:
        return [self.pixels(row["body"]) for row in inputs]

    def pixels(self, body: Any) -> Any:
        try:
            return self.transform(Image.open(io.BytesIO(body["image"]))).numpy()
        except KeyError as error:
            return PredictionError(UNPROCESSABLE, f"cannot find key {error}")
        except OSError as error:
            return PredictionError(UNPROCESSABLE, f"cannot decode as image data: {error}")


class Classifies(Handler):
    example = [np.zeros((3, 224, 224), np.float32)] * 16

    def initialize(self, context: Any) -> None:
        super().initialize(context)
        torch.manual_seed(7)
        self.model = torchvision.models.resnet50(weights=None).eval()

    def inference(self, inputs: Any) -> Any:
        with torch.no_grad():
            batch = torch.stack([torch.tensor(row["body"]) for row in inputs])
            return torch.argmax(self.model(batch), dim=1).tolist()


class Category(Handler):
    def inference(self, inputs: Any) -> Any:
        return [{"category": f"category {row['body']}"} for row in inputs]


# -- distil_bert_server_pytorch --


class Tokens(Handler):
    def initialize(self, context: Any) -> None:
        super().initialize(context)
        self.tokenizer = AutoTokenizer.from_pretrained(str(context.model_dir))

    def inference(self, inputs: Any) -> Any:
        return [self.tokenizer.encode(row["body"].decode(), add_special_tokens=True) for row in inputs]


class Sentiment(Handler):
    example = [[2, 5, 6, 3] * 5] * 32

    def initialize(self, context: Any) -> None:
        super().initialize(context)
        self.model = AutoModelForSequenceClassification.from_pretrained(str(context.model_dir)).eval()

    def inference(self, inputs: Any) -> Any:
        tensors = [torch.tensor(row["body"]) for row in inputs]
        with torch.no_grad():
            [logits] = self.model(torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)).to_tuple()
        for idx in range(len(inputs)):
            self.context.set_response_content_type(idx, "text/plain")
        return [f"positive={positive}" for _, positive in logits.softmax(dim=1).tolist()]


# -- embedding --


class Embeddings(Handler):
    def initialize(self, context: Any) -> None:
        super().initialize(context)
        self.tokenizer = AutoTokenizer.from_pretrained(str(context.model_dir))
        self.model = AutoModel.from_pretrained(str(context.model_dir)).eval()

    def inference(self, inputs: Any) -> Any:
        return [self.answer(row["body"]) for row in inputs]

    def answer(self, asked: Any) -> Any:
        if asked["model"] != "thenlper/gte-base":
            return PredictionError(400, f"the requested model {asked['model']} is not supported by this worker")
        given = self.tokenizer(asked["input"], padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            hidden, mask = self.model(**given)[0], given["attention_mask"].unsqueeze(-1)
        vectors = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1).numpy()
        shown = [one.tolist() for one in vectors]
        if asked.get("encoding_format") == "base64":
            shown = [base64.b64encode(one.tobytes()).decode() for one in vectors]
        data = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(shown)]
        used = int(given["attention_mask"].sum())
        usage = {"prompt_tokens": used, "completion_tokens": 0, "total_tokens": used}
        return {"object": "list", "data": data, "model": asked["model"], "usage": usage}
