"""Names of the contestants, and what is promised beside them."""

from __future__ import annotations

MSX, RUNNER, TORCH = "msx-serve", "its runner alone", "torch, eager loop"
HUGGING_FACE, CTRANSLATE2 = "Hugging Face generate", "CTranslate2"
OF_HUGGING_FACE = 0.9
"""The promise: a share of its speed."""
