"""vLLM's exceptions as those that clients understand."""

from collections.abc import Iterator
from contextlib import contextmanager

from vllm.exceptions import GracefulHTTPError, VLLMClientError, VLLMValidationError
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

from msx_core.statuses import PREDICTION_FAILED
from msx_sdk.errors import InvalidInput, PredictionError
from msx_sdk.generation import ContextLengthExceeded
from msx_vllm.checks import PROMPT, too_long

TOO_LONG = ("input_text", "input_tokens")
"""vLLM's names of what it finds too long."""


@contextmanager
def told(context: int, name: str = PROMPT, *, constrained: bool = False) -> Iterator[None]:
    """Raise what vLLM raises as InvalidInput or PredictionError. `name`: the request's name of its text;
    `constrained`: it has a constraint, which is what an error without a parameter is about."""
    try:
        yield
    except VLLMValidationError as error:
        if error.parameter in TOO_LONG:
            raise ContextLengthExceeded(too_long(None, context, name)) from None
        name = error.parameter or ("constraint" if constrained else "")
        raise InvalidInput(f"{name}: {error.args[0]}" if name else str(error)) from None
    except VLLMClientError as error:
        raise InvalidInput(str(error)) from None
    except GracefulHTTPError as error:
        raise PredictionError(int(error.http_status), error.message) from None
    except EngineDeadError:
        raise PredictionError(
            PREDICTION_FAILED, "The model has stopped working: vLLM's engine has ended; its log says why."
        ) from None
    except EngineGenerateError as error:
        raise PredictionError(PREDICTION_FAILED, f"vLLM failed at this request: {error.__cause__!r}") from error
