"""`ts.context`: the SDK's context and request processor, made as TorchServe's are.

Workers hand out the SDK's own; these are for what handlers annotate, and for their unit tests.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msx_core.request_processor
import msx_sdk.context
from msx_core.batch import Batch, ReplyState
from msx_sdk.context import ModelInfo
from msx_sdk.metrics import Metrics
from msx_sdk.request import Headers, InferenceRequest

__all__ = ["Context", "RequestProcessor"]


class RequestProcessor(msx_core.request_processor.RequestProcessor):
    """One request of the given headers."""

    def __init__(self, request_header: Mapping[str, Any]) -> None:
        self.batch = Batch([InferenceRequest("", {}, Headers(request_header))], None)
        context = msx_sdk.context.Context(ModelInfo(""))
        context._batch = self.batch
        super().__init__(context, 0)


class Context(msx_sdk.context.Context):
    def __init__(
        self,
        model_name: str,
        model_dir: str | Path,
        manifest: dict[str, Any],
        batch_size: int,
        gpu: int | None,
        mms_version: str,
        limit_max_image_pixels: bool = True,
        metrics: Metrics | None = None,
        model_yaml_config: dict[str, Any] | None = None,
    ) -> None:
        info = ModelInfo(
            model_name=model_name,
            model_dir=Path(model_dir),
            manifest=manifest,
            config=model_yaml_config or {},
            batch_size=batch_size,
            device_id=gpu,
            limit_max_image_pixels=limit_max_image_pixels,
            server_version=mms_version,
        )
        super().__init__(info, metrics)

    @property
    def request_ids(self) -> dict[int, str]:
        return super().request_ids

    @request_ids.setter
    def request_ids(self, ids: Mapping[int, str]) -> None:
        known = self._batch.requests if self._batch else []
        headers = [known[idx].headers if idx < len(known) else Headers() for idx in ids]
        requests = [InferenceRequest(id, {}, own) for id, own in zip(ids.values(), headers, strict=True)]
        self._batch = Batch(requests, None)

    @property
    def request_processor(self) -> list[msx_core.request_processor.RequestProcessor]:
        return super().request_processor

    @request_processor.setter
    def request_processor(self, processors: Sequence[RequestProcessor]) -> None:
        """The requests, and what was said about their responses, become this context's."""
        ids = [request.id for request in self._batch.requests] if self._batch else []
        requests = [processor.batch.requests[0] for processor in processors]
        for request, id in zip(requests, ids, strict=False):
            request.id = id
        self._batch = Batch(requests, None, [_state(processor) for processor in processors])


def _state(processor: RequestProcessor) -> ReplyState:
    state = ReplyState()
    state.head = processor.batch.head(0)
    return state
