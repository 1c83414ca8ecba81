"""Made-up hourly loads of a power grid: a day's and a week's rhythm, a drift, and noise."""

import numpy as np
from numpy.typing import NDArray

HISTORY, AHEAD = 48, 12
"""Hours that the network sees, and hours that it tells."""
Floats = NDArray[np.float32]


def load(hours: int, seed: int) -> Floats:
    """→ [hours], about 500 MW"""
    random, hour = np.random.default_rng(seed), np.arange(hours)
    phase = random.uniform(0, 24)
    day = 120 * np.sin((hour + phase) * np.pi / 12) + 40 * np.sin((hour + phase) * np.pi / 6)
    week = 60 * np.cos(hour * np.pi / 84)
    drift = random.normal(0, 2, hours).cumsum()
    return (500 + day + week + drift + random.normal(0, 8, hours)).astype(np.float32)


def windows(series: Floats) -> tuple[Floats, Floats]:
    """Every window → histories [n, HISTORY], what came after each [n, AHEAD]"""
    whole = np.lib.stride_tricks.sliding_window_view(series, HISTORY + AHEAD)
    return whole[:, :HISTORY], whole[:, HISTORY:]


def scaled(histories: Floats) -> tuple[Floats, Floats, Floats]:
    """Each history with the mean 0 and the deviation 1, and both numbers [n, 1]: training and serving use the same."""
    mean, deviation = histories.mean(1, keepdims=True), histories.std(1, keepdims=True) + np.float32(1e-6)
    return (histories - mean) / deviation, mean, deviation
