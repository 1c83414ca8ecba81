"""As the nodes of TorchServe's dog-breed workflow: images come as base64 from the node before, answers are names."""

import base64

from ts.torch_handler.image_classifier import ImageClassifier

LABELS = ["cat", "dog"]


class NamedClassifier(ImageClassifier):
    def preprocess(self, data):
        rows = [row.get("data") or row.get("body") for row in data]
        return super().preprocess([{"body": base64.b64decode(row)} for row in rows])

    def postprocess(self, predictions):
        return [{"name": LABELS[prediction.argmax()]} for prediction in predictions]
