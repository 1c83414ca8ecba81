"""Captum's attributions, where the package is installed."""

from typing import Any

from msx_sdk import HandlerLoadError, PredictionError

from .._extras import need


def attributions(model: Any) -> Any:
    """Captum's integrated gradients of this model."""
    return _captum().IntegratedGradients(model)


def integrated_gradients(model: Any, inputs: Any, target: Any) -> Any:
    """How much each value of the inputs contributes to `target`, normalised; shaped as the inputs."""
    return normalised(attributions(model).attribute(inputs, target=target, n_steps=15))


def layer_gradients(model: Any, layer: Any, inputs: Any, offsets: Any, target: Any) -> Any:
    """How much each token contributes to `target`, normalised."""
    gradients = _captum().LayerIntegratedGradients(model, layer)
    return normalised(gradients.attribute(inputs, additional_forward_args=(offsets,), target=target).sum(dim=-1))


def normalised(attributions: Any) -> Any:
    """The values divided by their norm; zeros stay zeros."""
    norm = need("torch").norm(attributions)
    return attributions if norm == 0 else attributions / norm


def _captum() -> Any:
    try:
        return need("captum.attr")
    except (ImportError, HandlerLoadError) as error:
        raise PredictionError(501, f"explanations need captum where the workers run: {error}") from error
