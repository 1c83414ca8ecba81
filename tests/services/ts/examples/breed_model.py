"""As the second model of TorchServe's dog-breed workflow: breeds by a small ResNet."""

from torch import nn
from torchvision.models.resnet import BasicBlock, ResNet


class ImageClassifier(ResNet):
    def __init__(self):
        super().__init__(BasicBlock, [1, 1, 1, 1])
        self.fc = nn.Linear(self.fc.in_features, 6)
