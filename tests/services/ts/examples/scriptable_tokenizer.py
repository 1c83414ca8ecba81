"""As TorchServe's example of a model with a tokenizer in it: the handler cleans texts and maps classes."""

from abc import ABC

import torch
from torch.nn import functional
from ts.torch_handler.base_handler import BaseHandler
from ts.utils.util import CLEANUP_REGEX, map_class_to_label


class CleanedTextClassifier(BaseHandler, ABC):
    def preprocess(self, data):
        texts = []
        for row in data:
            text = row.get("data") or row.get("body")
            if isinstance(text, (bytes, bytearray)):
                text = text.decode("utf-8")
            texts.append(CLEANUP_REGEX.sub("", text).lower())
        return texts

    def inference(self, data, *args, **kwargs):
        with torch.no_grad():
            return self.model(data)

    def postprocess(self, data):
        return map_class_to_label(functional.softmax(data, dim=1).tolist(), self.mapping)

    def _load_torchscript_model(self, model_pt_path):
        model = torch.jit.load(model_pt_path)
        model.to(self.device)
        return model
