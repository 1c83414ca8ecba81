"""As the model files of TorchServe's examples of ResNet, with fewer blocks."""

from torchvision.models.resnet import BasicBlock, ResNet


class SmallResNet(ResNet):
    def __init__(self):
        super().__init__(BasicBlock, [1, 1, 1, 1])
