"""Declares the model of a distributed servable."""

from collections.abc import Sequence

from msx_core.servables import Model, ModelDeclaration, current_servable

from ..._checks import as_ints, check_bool, check_int


def declare_servable(
    rank_size: int,
    stage_size: int,
    with_batch_dim: bool = True,
    without_batch_dim_inputs: int | Sequence[int] | None = None,
    enable_pipeline_infer: bool = False,
) -> Model:
    """The one model of the servable, which runs on `rank_size` ranks, `rank_size / stage_size` for each stage.

    Inputs with the numbers `without_batch_dim_inputs` have no batch dimension; a plain 0 is ignored, write `(0,)`.
    `enable_pipeline_infer` changes nothing: calls follow each other. Raises RuntimeError.
    """
    check_bool("with_batch_dim", with_batch_dim)
    check_bool("enable_pipeline_infer", enable_pipeline_infer)
    check_int("rank_size", rank_size, 1)
    check_int("stage_size", stage_size, 1)
    inputs = as_ints("without_batch_dim_inputs", without_batch_dim_inputs) if without_batch_dim_inputs else ()
    servable = current_servable()
    return servable.declare(
        ModelDeclaration(
            key=servable.name,
            with_batch_dim=with_batch_dim,
            without_batch_dim_inputs=inputs,
            rank_size=rank_size,
            stage_size=stage_size,
            enable_pipeline_infer=enable_pipeline_infer,
        )
    )
