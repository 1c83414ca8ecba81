"""A bag of embeddings with random weights, whose best class says where it computed, as picture_net.py's does."""

import torch
from torch import nn


class WordsNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(64, 32)
        self.classes = nn.Linear(32, 9)

    def forward(self, tokens, offsets):
        scores = self.classes(self.embedding(tokens, offsets))
        place = 1 + scores.device.index if scores.is_cuda else 0
        return scores + 20 * torch.eye(9, device=scores.device)[place]
