"""The model of a distributed servable: each rank has a MindIR, rank 0 calls it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from msx_core.mindspore.rank_models import RankModel, load_rank_model
from msx_core.servables import Model
from msx_mindspore_serving.servables.batch_sizes import batch_size_of, check_counts
from msx_mindspore_serving.servables.models import ServedModel, Subgraph
from msx_mindspore_serving.servables.settings import decryption_of
from msx_sdk import Context
from msx_sdk.mindspore import init_parallel


class DistributedModel:
    """`served` is for rank 0."""

    def __init__(self, model: Model, ranks: RankModel) -> None:
        self._ranks = ranks
        subgraphs = [Subgraph(*pair) for pair in zip(ranks.inputs, ranks.outputs, strict=False)]
        size = 0 if ranks.follows else batch_size_of(model.declaration, subgraphs)
        self.served = ServedModel(model.declaration, subgraphs, ranks, size)
        if not ranks.follows:
            check_counts(model, subgraphs)

    @classmethod
    def load(cls, context: Context, model: Model) -> DistributedModel:
        """Load it, on every rank. Raises HandlerLoadError."""
        ranks, stages = model.declaration.rank_size, model.declaration.stage_size
        return cls(model, load_rank_model(context, init_parallel(context), ranks, stages, decryption_of(context)))

    def leading(self) -> AbstractContextManager[None]:
        return self._ranks.leading()

    def follow(self) -> None:
        self._ranks.follow()
