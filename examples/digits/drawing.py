"""Images of digits as hands would draw them: strokes, shifted, slanted, scaled, thick or thin, with noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
SIDE = 128
Array = np.ndarray[Any, Any]
Stroke = list[tuple[float, float]]
"""Points of a line in a square around (0, 0), from -1 to 1; y grows downwards."""


def arc(x: float, y: float, width: float, height: float, begin: int = 0, end: int = 360) -> Stroke:
    """A part of an ellipse, by degrees, clockwise from the right."""
    angles = [math.radians(begin + (end - begin) * step / 16) for step in range(17)]
    return [(x + width * math.cos(angle), y + height * math.sin(angle)) for angle in angles]


STROKES: list[list[Stroke]] = [
    [arc(0, 0, 0.6, 1)],
    [[(-0.4, -0.5), (0.1, -1), (0.1, 1)]],
    [[*arc(0, -0.5, 0.55, 0.5, 180, 390), (-0.6, 1), (0.6, 1)]],
    [[*arc(0, -0.5, 0.5, 0.5, 200, 450), *arc(0, 0.5, 0.6, 0.5, 270, 520)]],
    [[(0.2, -1), (-0.6, 0.3), (0.7, 0.3)], [(0.3, -0.3), (0.3, 1)]],
    [[(0.5, -1), (-0.5, -1), (-0.5, -0.1), *arc(0, 0.4, 0.6, 0.6, 230, 510)]],
    [[(0.4, -1), (-0.4, -0.1), *arc(0, 0.45, 0.55, 0.55, 200, 560)]],
    [[(-0.6, -1), (0.6, -1), (-0.2, 1)]],
    [arc(0, -0.5, 0.45, 0.5), arc(0, 0.5, 0.55, 0.5)],
    [[*arc(0, -0.45, 0.55, 0.55, 20, 380), (0.2, 1)]],
]


def draw(digit: int, chance: np.random.Generator) -> Image.Image:
    """White on black, in gray."""
    noise = np.abs(chance.normal(0, 8, (SIDE, SIDE))).clip(0, 255).astype(np.uint8)
    image = Image.fromarray(noise)
    pen = ImageDraw.Draw(image)
    turn, slant = chance.uniform(-0.15, 0.15), chance.uniform(-0.25, 0.25)
    width, height, x, y = (chance.uniform(*limits) for limits in ((36, 52), (46, 56), (58, 70), (60, 68)))
    ink, thick = int(chance.integers(180, 256)), int(chance.integers(10, 20))
    for stroke in STROKES[digit]:
        shaken = np.array(stroke) + chance.normal(0, 0.03, (len(stroke), 2))
        turned = shaken @ np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn) - slant, math.cos(turn)]])
        points = [(float(at[0]), float(at[1])) for at in turned * (width, height) + (x, y)]
        pen.line(points, fill=ink, width=thick, joint="curve")
    return image


def make(count: int, seed: int) -> tuple[list[Image.Image], Array]:
    """Images and their digits."""
    chance = np.random.default_rng(seed)
    digits = chance.integers(0, len(NAMES), count).astype(np.int32)
    return [draw(int(digit), chance) for digit in digits], digits
