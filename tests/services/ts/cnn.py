"""A handler of a torch CNN in TorchServe's style: images of digits in, the most probable digit out."""

import io

import numpy as np
import torch
from PIL import Image
from ts.torch_handler.base_handler import BaseHandler


class DigitHandler(BaseHandler):
    def preprocess(self, data):
        images = []
        for row in data:
            raw = row.get("data") or row.get("body")
            image = Image.open(io.BytesIO(raw)).convert("L").resize((28, 28))
            images.append(torch.from_numpy(np.asarray(image, dtype=np.float32) / 255)[None])
        return torch.stack(images).to(self.device)

    def postprocess(self, data):
        return data.argmax(1).tolist()
