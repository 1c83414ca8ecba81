"""As the first node of TorchServe's dog-breed workflow: images come as base64, answers are names."""

import base64

from ts.torch_handler.image_classifier import ImageClassifier

LABELS = ["cat", "dog"]


class CatDogClassifier(ImageClassifier):
    def preprocess(self, data):
        rows = [row.get("data") or row.get("body") for row in data]
        return ImageClassifier.preprocess(self, [{"body": base64.b64decode(row)} for row in rows])

    def postprocess(self, predictions):
        return [LABELS[prediction.argmax()] for prediction in predictions]
