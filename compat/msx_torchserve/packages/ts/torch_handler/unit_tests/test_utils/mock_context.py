"""`ts.torch_handler.unit_tests.test_utils.mock_context`: a context for tests of a handler."""

import importlib.util
from pathlib import Path
from typing import Any

from ...._extras import need
from ....metrics.metrics_store import MetricsStore
from ....utils.util import get_yaml_config


class MockContext:
    """The attributes of a context that handlers read; a test may set them. `msx_sdk.testing.LocalModel` runs a handler
    as a worker does."""

    def __init__(
        self,
        model_pt_file: str | None = "model.pt",
        model_dir: str = "ts/torch_handler/unit_tests/models/tmp",
        model_file: str | None = "model.py",
        gpu_id: str | None = "0",
        model_name: str = "mnist",
        model_yaml_config_file: str | None = None,
    ) -> None:
        files = {"serializedFile": model_pt_file, "modelFile": model_file}
        self.manifest: dict[str, Any] = {"model": {name: file for name, file in files.items() if file}}
        self.system_properties: dict[str, Any] = {"model_dir": model_dir}
        if gpu_id and _has_gpu():
            self.system_properties["gpu_id"] = gpu_id
        self.explain = False
        self.metrics = MetricsStore(None, model_name)
        file = model_yaml_config_file
        self.model_yaml_config = get_yaml_config(str(Path(model_dir) / file)) if file else {}

    def get_request_header(self, idx: int, exp: str) -> bool:
        """Whether a request asks for an explanation: TorchServe's mock knows no other header, and none of request 0."""
        return bool(idx and exp and self.explain)


def _has_gpu() -> bool:
    return importlib.util.find_spec("torch") is not None and bool(need("torch").cuda.is_available())
