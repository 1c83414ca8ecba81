from torch import nn


class Head(nn.Sequential):
    def __init__(self, channels, num_classes):
        super().__init__(nn.ReLU(), nn.Conv2d(channels, num_classes, 1))
