"""As TorchServe's MNIST example: the default image classifier with transforms and a postprocess of its own."""

from torch.profiler import ProfilerActivity
from torchvision import transforms
from ts.torch_handler.image_classifier import ImageClassifier


class DigitClassifier(ImageClassifier):
    image_processing = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])

    def __init__(self):
        super().__init__()
        self.profiler_args = {"activities": [ProfilerActivity.CPU], "record_shapes": True}

    def postprocess(self, data):
        return data.argmax(1).tolist()
