"""As the handler of TorchServe's example of XGBoost: a model that is not torch's, and rows of numbers as text."""

from pathlib import Path

import numpy as np
import torch
from ts.torch_handler.base_handler import BaseHandler
from ts.utils.util import load_label_mapping
from xgboost import XGBClassifier


class IrisHandler(BaseHandler):
    def initialize(self, context):
        self.device = torch.device("cpu")
        self.manifest = context.manifest
        folder = Path(context.system_properties.get("model_dir"))
        self.model = XGBClassifier()
        self.model.load_model(str(folder / self.manifest["model"]["serializedFile"]))
        self.mapping = load_label_mapping(str(folder / "index_to_name.json"))
        self.initialized = True

    def preprocess(self, requests):
        rows = [row.get("data") or row.get("body") for row in requests]
        return np.array([[float(value) for value in row.decode("utf-8").split(",")] for row in rows])

    def inference(self, data):
        return self.model.predict(data)

    def postprocess(self, result):
        return [self.mapping[str(number)] for number in result.tolist()]
