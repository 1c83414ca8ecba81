"""A small CNN with random weights, whose best class says where it computed: 0 the CPU, 1 and more the GPUs."""

import torch
from torch import nn


class PictureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 7, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=4), nn.ReLU()
        )
        self.classes = nn.Linear(32, 9)

    def forward(self, images):
        scores = self.classes(self.features(images).mean(dim=(2, 3)))
        place = 1 + scores.device.index if scores.is_cuda else 0
        return scores + 20 * torch.eye(9, device=scores.device)[place]
