"""In the place of torchvision's detectors, which TorchServe's examples derive theirs from: a list of images in."""

import torch
from torch import nn


class ObjectDetectorModel(nn.Module):
    def __init__(self, num_classes=91, **kwargs):
        super().__init__()
        self.head = nn.Linear(3, num_classes)

    def forward(self, images):
        return [self.found_on(image) for image in images]

    def found_on(self, image):
        _, height, width = image.shape
        scores, labels = self.head(image.mean(dim=(1, 2))).softmax(dim=0).topk(3)
        boxes = torch.tensor([[0.0, 0.0, width - n, height - n] for n in range(3)])
        return {"boxes": boxes, "labels": labels, "scores": scores / scores[0]}
