"""Tells the next hours of a load. A request is {"hours": [48 numbers or more]}, checked before it gets here."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from series import HISTORY, Floats, scaled

from msx_sdk import Context, Handler, InvalidInput
from msx_sdk.mindspore import Network, load_network, setup

MOST = 10_000
"""Numbers of one request; the last HISTORY of them count."""
LARGEST = 1e15
"""The network computes with float32, whose squares end at 1e38."""


@dataclass
class History:
    hours: list[float]


@dataclass
class Forecast:
    """`error`: what the forecast of each hour is wrong by, on average."""

    hours: list[float]
    error: list[float]


class ForecastHandler(Handler):
    example = History([float(hour % 24) for hour in range(HISTORY)])
    packed_with = ("--serialized-file", "errors.json")
    network: Network

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        setup(context)
        self.network = load_network(context)
        self.errors: list[float] = json.loads((context.model_dir / "errors.json").read_text())

    def inference(self, inputs: list[History]) -> list[Forecast]:
        """All series of the batch go through the network at once. A request that is wrong fails alone."""
        answers: list[Any] = [wrong(request.hours) for request in inputs]
        right = [request.hours[-HISTORY:] for request, error in zip(inputs, answers, strict=True) if error is None]
        forecasts = iter(self.forecast(np.array(right, np.float32)) if right else ())
        return [next(forecasts) if answer is None else answer for answer in answers]

    def forecast(self, histories: Floats) -> list[Forecast]:
        x, mean, deviation = scaled(histories)
        (rows,) = self.network([x])
        return [Forecast([round(float(it), 1) for it in row], self.errors) for row in rows * deviation + mean]


def wrong(hours: list[float]) -> InvalidInput | None:
    if not HISTORY <= len(hours) <= MOST:
        return InvalidInput(f"hours: expected {HISTORY} to {MOST} numbers, got {len(hours)}")
    odd = next((place for place, hour in enumerate(hours) if not abs(hour) <= LARGEST), None)
    return (
        None
        if odd is None
        else InvalidInput(f"hours[{odd}]: expected a number between -{LARGEST:g} and {LARGEST:g}, got {hours[odd]:g}")
    )
