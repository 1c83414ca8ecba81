"""A model whose text can be foreseen, and prompts in which it stands already, does not, or seems to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.llm.arrivals import Arrival, Clients
from benchmarks.llm.checkpoint import DEVIATION, Checkpoint

RUN = 3
"""Tokens that must stand in the prompt for a draft."""


def follower(token: int, vocabulary: int) -> int:
    """The token that follows, by a cycle of all tokens of a vocabulary that is a power of two."""
    return (5 * token + 3) % vocabulary


class CopyingCheckpoint(Checkpoint):
    """All of a Llama's products are computed, but those that would add to the state are with zeros: each token has one
    that follows it."""

    def _tensors(self) -> Iterator[bytes]:
        import numpy as np  # the scripts beside this one do without it

        random = np.random.default_rng(0)
        embedding = random.standard_normal((self.vocabulary, self.dim), np.float32) * np.float32(DEVIATION)
        head = np.empty_like(embedding)
        head[[follower(token, self.vocabulary) for token in range(self.vocabulary)]] = embedding
        fixed: dict[str, Any] = {"model.embed_tokens.weight": embedding, "lm_head.weight": head}
        for name, shape in self.shapes().items():
            if name in fixed:
                yield fixed[name].tobytes()
            elif name.endswith(("o_proj.weight", "down_proj.weight")):
                yield np.zeros(shape, np.float32).tobytes()
            elif len(shape) == 1:  # of a norm
                yield np.ones(shape, np.float32).tobytes()
            else:
                yield (random.standard_normal(shape, np.float32) * np.float32(DEVIATION)).tobytes()


@dataclass
class CopyingPrompts:
    """Prompts of `length` tokens, all of which begin differently."""

    clients: Clients
    length: int

    def copying(self, output: int) -> Arrival:
        """The text stands in the prompt, up to its last token."""
        said = self._said(output + RUN)
        return self._ending([*said, *said[:RUN]], output)

    def random(self, output: int) -> Arrival:
        """Nothing stands in the prompt twice."""
        return Arrival(0.0, self.clients.prompt(self.length), output)

    def misleading(self, output: int) -> Arrival:
        """Any three tokens of the text's first ones stand in the prompt, and another token behind them."""
        said = self._said(self.length // (RUN + 1))
        runs = [said[start : start + RUN] for start in range(len(said) - RUN)]
        return self._ending([token for run in runs for token in (*run, run[1])] + runs[0], output)

    def kinds(self) -> dict[str, Callable[[int], Arrival]]:
        return {"copying": self.copying, "random": self.random, "misleading": self.misleading}

    def _said(self, count: int) -> list[int]:
        said = [self.clients.prompt(2)[1]]
        while len(said) < count:
            said.append(follower(said[-1], self.clients.vocabulary))
        return said

    def _ending(self, end: list[int], output: int) -> Arrival:
        made = self.random(output)
        return replace(made, prompt=(*made.prompt[: self.length - len(end)], *end))
