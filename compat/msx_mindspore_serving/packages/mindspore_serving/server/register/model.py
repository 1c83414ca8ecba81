"""Declares models."""

from collections.abc import Sequence

from msx_core.servables import Model, ModelDeclaration, current_servable

from ..._checks import as_ints, as_strs, check_bool, check_str
from .context import Context
from .deprecation import warn_deprecated, warn_options
from .options import AclOptions, GpuOptions

__all__ = ["Model", "declare_model", "declare_servable"]

_FORMATS = ("om", "mindir", "mindir_opt", "mindir_lite")


def declare_model(
    model_file: str | Sequence[str],
    model_format: str,
    with_batch_dim: bool = True,
    options: AclOptions | GpuOptions | None = None,
    without_batch_dim_inputs: int | Sequence[int] | None = None,
    context: Context | None = None,
    config_file: str | None = None,
) -> Model:
    """A model of the servable; files lie in its version's folder, and several are subgraphs of one model.

    Inputs with the numbers `without_batch_dim_inputs` have no batch dimension; a plain 0 is ignored, write `(0,)`.
    `config_file` is relative to the servable's folder. Raises RuntimeError.
    """
    files = as_strs("model_file", model_file)
    check_str("model_format", model_format)
    if model_format.lower() not in _FORMATS:
        raise RuntimeError("model format can only be OM, MindIR or MindIR_Lite, case ignored")
    check_bool("with_batch_dim", with_batch_dim)
    _check_kinds(context, options)
    if config_file is not None:
        check_str("config_file", config_file)
    declaration = ModelDeclaration(
        key=";".join(files),
        files=files,
        format=model_format.lower(),
        with_batch_dim=with_batch_dim,
        without_batch_dim_inputs=_inputs(without_batch_dim_inputs),
        context=context,
        options=options,
        config_file=config_file,
    )
    return current_servable().declare(declaration)


def declare_servable(
    servable_file: str | Sequence[str],
    model_format: str,
    with_batch_dim: bool = True,
    options: AclOptions | GpuOptions | None = None,
    without_batch_dim_inputs: int | Sequence[int] | None = None,
) -> Model:
    """Deprecated: `declare_model`. Raises RuntimeError."""
    warn_deprecated("declare_servable", "declare_model")
    return declare_model(servable_file, model_format, with_batch_dim, options, without_batch_dim_inputs)


def _inputs(numbers: int | Sequence[int] | None) -> tuple[int, ...]:
    return as_ints("without_batch_dim_inputs", numbers) if numbers else ()


def _check_kinds(context: object, options: object) -> None:
    if context is not None and not isinstance(context, Context):
        raise RuntimeError(f"Parameter 'context' should be Context, but gotten {type(context)}")
    if options is not None and not isinstance(options, AclOptions | GpuOptions):
        raise RuntimeError(f"Parameter 'options' should be None, GpuOptions or AclOptions, but gotten {type(options)}")
    if options is not None and context is None:
        warn_options()
