"""The weights of a layer's experts, which the devices' cells compute with."""

from typing import Any

from mindspore import Parameter, nn
from mindspore.common.initializer import initializer

from msx_core.mindspore.layers.shards import check_divisible
from msx_core.mindspore.loading import fill
from msx_core.mindspore.weights import Weights, part
from msx_llm.models.experts import ExpertsConfig, read_experts
from msx_llm.models.quantised.expert_matrices import expert_matrices
from msx_llm.models.quantised.format import LinearFormat
from msx_llm.models.quantised.matrix import ArrangedTensors
from msx_sdk.mindspore.parallel import Parallel


class ExpertWeights(nn.Cell):  # type: ignore[misc]
    """This rank's experts: [experts, in, out], gate and up side by side. A rank has a part of each, by its inner width,
    or with `whole` its share of them, from the `first` on; `count` is how many a rank has of all."""

    loads_inner = True

    def __init__(
        self,
        hidden: int,
        experts: ExpertsConfig,
        parallel: Parallel,
        dtype: Any,
        form: LinearFormat | None = None,
    ) -> None:
        """`form`: of integers; None: they are numbers."""
        super().__init__()
        self.form, self.hidden = form, hidden
        self.whole, self.all = experts.whole, experts.count
        key, divided = ("num_experts", experts.count) if self.whole else ("moe_intermediate_size", experts.inner)
        check_divisible(key, divided, parallel)
        share, one = part(divided, parallel.tp_size, parallel.tp_rank), divided // parallel.tp_size
        self.count, self.inner = (one, experts.inner) if self.whole else (experts.count, one)
        self.first: int = share.start if self.whole else 0
        self.own = slice(0, experts.inner) if self.whole else share
        self.make((hidden, 2 * self.inner), (self.inner, hidden), dtype)

    def make(self, up: tuple[int, int], down: tuple[int, int], dtype: Any) -> None:
        """Create the weights, in shapes [in, out]."""
        self.gate_up = Parameter(initializer("zeros", (self.count, *up), dtype), name="gate_up")
        self.down = Parameter(initializer("zeros", (self.count, *down), dtype), name="down")

    def from_own(self, chosen: Any) -> Any:
        """The numbers of the chosen experts, counted from this rank's first one round: its own are below `count`."""
        chosen = chosen - self.first
        return chosen + (chosen < 0).astype(chosen.dtype) * self.all

    def load_shard(self, weights: Any, name: str) -> None:
        whole, outputs = slice(None), ("gate_proj", "up_proj")
        fill(self.gate_up, self.read_own(weights, name, self.gate_up.shape, outputs, (self.own, whole)))
        fill(self.down, self.read_own(weights, name, self.down.shape, ("down_proj",), (whole, self.own)))

    def read_own(self, weights: Weights, name: str, shape: Any, outputs: Any, own: Any) -> Any:
        return read_experts(weights, name, shape, outputs, own, self.first)

    def load_integers(self, weights: ArrangedTensors, name: str) -> None:
        """Where `make` has made cells that `put` the matrices of experts."""
        assert self.form is not None
        whole, names = slice(0, self.hidden), [f"{name}.{it}" for it in range(self.first, self.first + self.count)]
        outputs = ("gate_proj", "up_proj")
        self.gate_up.put(expert_matrices(weights, self.form, names, outputs, (whole, self.own)))
        self.down.put(expert_matrices(weights, self.form, names, ("down_proj",), (self.own, whole)))
