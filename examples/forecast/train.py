"""Trains a small GRU to tell the next hours of a load, and exports it as a MindIR for any number of series."""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from series import AHEAD, HISTORY, Floats, load, scaled, windows

WIDTH = 32
HOURS = 6
"""Hours in one step of the GRU."""


class ForecastNet(nn.Cell):
    """history [n, HISTORY] → [n, AHEAD], both scaled."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs, self.gates = nn.Dense(HOURS, 3 * WIDTH), nn.Dense(WIDTH, 3 * WIDTH)
        self.answer = nn.Dense(WIDTH + HOURS, AHEAD)
        self.split, self.sigmoid, self.tanh = ops.Split(1, 3), ops.Sigmoid(), ops.Tanh()
        self.join = ops.Concat(1)

    def construct(self, history: Tensor) -> Tensor:
        state = history[:, :1] * 0
        state = ops.tile(state, (1, WIDTH))
        for start in range(0, HISTORY, HOURS):
            state = self.step(history[:, start : start + HOURS], state)
        return self.answer(self.join((state, history[:, HISTORY - HOURS :])))

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        of_x, of_state = self.split(self.inputs(x)), self.split(self.gates(state))
        reset, update = self.sigmoid(of_x[0] + of_state[0]), self.sigmoid(of_x[1] + of_state[1])
        new = self.tanh(of_x[2] + reset * of_state[2])
        return new + update * (state - new)


def train(net: ForecastNet, histories: Floats, futures: Floats, epochs: int = 8, size: int = 64) -> None:
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 3e-3))
    step.set_train()
    random = np.random.default_rng(0)
    for epoch in range(1, epochs + 1):
        chosen = random.permutation(len(histories))[: len(histories) // size * size].reshape(-1, size)
        total = sum(float(step(Tensor(histories[batch]), Tensor(futures[batch]))) for batch in chosen)
        print(f"epoch {epoch}/{epochs}  loss {total / len(chosen):.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "build")
    folder = parser.parse_args().out
    folder.mkdir(exist_ok=True)
    ms.set_seed(0)
    ms.set_context(mode=ms.GRAPH_MODE)
    histories, futures = map(np.concatenate, zip(*(windows(load(700, seed)) for seed in range(6)), strict=True))
    x, mean, deviation = scaled(histories)
    net = ForecastNet()
    train(net, x, (futures - mean) / deviation)
    net.set_train(False)
    error = errors(net, *windows(load(700, seed=100)))
    print(f"mean error {error.mean():.1f} MW on a series that training did not see; a day ago: {a_day_ago():.1f} MW")
    if error.mean() > a_day_ago():
        raise SystemExit("expected less than the error of what was a day ago")
    any_number = Tensor(shape=[None, HISTORY], dtype=ms.float32)
    net.set_inputs(any_number)
    ms.export(net, any_number, file_name=str(folder / "forecast"), file_format="MINDIR")
    (folder / "errors.json").write_text(json.dumps([round(float(it), 2) for it in error]) + "\n")


def errors(net: ForecastNet, histories: Floats, futures: Floats) -> Floats:
    """The mean error of each hour ahead [AHEAD]."""
    x, mean, deviation = scaled(histories)
    return np.abs(net(Tensor(x)).asnumpy() * deviation + mean - futures).mean(0)


def a_day_ago() -> float:
    histories, futures = windows(load(700, seed=100))
    return float(np.abs(histories[:, HISTORY - 24 : HISTORY - 24 + AHEAD] - futures).mean())


if __name__ == "__main__":
    main()
