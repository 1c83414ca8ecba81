"""As TorchServe's MNIST example: the default image classifier with transforms and a postprocess of its own."""

import torch
from torch.profiler import ProfilerActivity
from ts.torch_handler.image_classifier import ImageClassifier


def to_normalised(image):
    """Convert a greyscale image like torchvision's ToTensor and Normalize: one channel."""
    width, height = image.size
    pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).reshape(height, width, -1)
    return (pixels.permute(2, 0, 1) / 255 - 0.1307) / 0.3081


class DigitClassifier(ImageClassifier):
    image_processing = staticmethod(to_normalised)

    def __init__(self):
        super().__init__()
        self.profiler_args = {"activities": [ProfilerActivity.CPU], "record_shapes": True}

    def postprocess(self, data):
        return data.argmax(1).tolist()
