"""Failures of instances, with MindSpore Serving's codes."""

from msx_core.servables import Stage
from msx_core.statuses import PREDICTION_FAILED
from msx_sdk.errors import PredictionError

FAILED, INVALID_INPUTS, SYSTEM_ERROR = "1", "2", "3"


def failure(code: str, text: str) -> PredictionError:
    """Failure with the status that other APIs answer: 400 for wrong inputs."""
    error = PredictionError(400 if code == INVALID_INPUTS else PREDICTION_FAILED, text)
    error.code = code
    return error


def call_failed(stage: Stage, method: str, text: str) -> PredictionError:
    """A function has failed an instance."""
    return failure(
        SYSTEM_ERROR,
        f"Call {stage.tag} Failed, method: '{method}', stage index(begin with 1): {stage.index}, error msg: {text}",
    )
