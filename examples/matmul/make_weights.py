"""Writes the weight of the product, [96, 16] of 0.5, to build/matmul.safetensors."""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

BUILD = Path(__file__).parent / "build"

if __name__ == "__main__":
    BUILD.mkdir(exist_ok=True)
    save_file({"matmul.weight": np.full((96, 16), 0.5, np.float32)}, BUILD / "matmul.safetensors")
    print("build/matmul.safetensors: matmul.weight [96, 16]")
