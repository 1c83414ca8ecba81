"""A handler on our base class that announces its tensors; other predictions are answered by their values."""

import numpy as np

from msx_sdk import Handler
from msx_sdk.kserve import Signature, TensorMeta


class Norms(Handler):
    def tensor_signature(self):
        return Signature((TensorMeta("rows", "FP32", (-1, 3)),), (TensorMeta("norm", "FP32", (-1,)),))

    def inference(self, inputs):
        return [self.answer(row["body"]) for row in inputs]

    def answer(self, body):
        if not isinstance(body, dict):
            return {"seen": type(body).__name__}
        rows = np.asarray(body["inputs"][0]["data"], np.float32).reshape(-1, 3)
        return {"norm": np.linalg.norm(rows, axis=1)}
