"""An encoder of BERT's kind with a classifier behind it, and random weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

VOCABULARY, POSITIONS, CLASSES = 30_522, 512, 8


class Encoder(nn.Module):  # type: ignore[misc]
    def __init__(self, layers: int, width: int) -> None:
        """BERT-base has 12 layers and a width of 768; a head has 64 of it."""
        super().__init__()
        self.words, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(POSITIONS, width)
        layer = nn.TransformerEncoderLayer(
            width, width // 64, 4 * width, activation="gelu", batch_first=True, dropout=0.0
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, tokens: Any) -> Any:
        """Return the scores of each text."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.layers(self.words(tokens) + self.positions(places)).mean(1)).float()


def encoder(layers: int, width: int, device: Any) -> Any:
    """Return an encoder on this device, in bfloat16 on a GPU."""
    torch.manual_seed(0)
    made = Encoder(layers, width).eval().to(device)
    return made.bfloat16() if device.type == "cuda" else made
