"""`ts.torch_handler.vllm_handler`: TorchServe's handler of language models by vLLM, over MSX's."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from msx_core.config.vllm_section import vllm_arguments
from msx_sdk import Context, HandlerLoadError, PredictionError
from msx_vllm.adapters import packed_adapters
from msx_vllm.engine_settings import EngineSettings
from msx_vllm.handler import VllmHandler

from ._vllm_settings import adapter_folders, chat_template, engine_arguments, handler_section, model_folder

REPLACED = ("handle", "preprocess", "inference", "postprocess", "_get_vllm_engine_config", "_set_attr_value")
"""Methods of TorchServe's class that nothing calls here: the server reads requests, and MSX's handler starts vLLM."""
CPU = "cpu"

log = logging.getLogger(__name__)


class VLLMHandler(VllmHandler):
    """Reads `handler:` of model-config.yaml as TorchServe's does; `vllm:` beside it has further arguments.

    A class derived from it may override `async def initialize`, which awaits `super().initialize(context)`, and what
    MSX's handlers of texts have.
    """

    def __init_subclass__(cls) -> None:
        """Raises HandlerLoadError for methods of TorchServe's that would never be called."""
        super().__init_subclass__()
        if found := [name for name in REPLACED if name in vars(cls)]:
            raise HandlerLoadError(
                f"{cls.__name__}.{found[0]}: is not called here, where the server itself reads and answers OpenAI's "
                "requests: leave it out, or derive the handler from msx_sdk.text_generation.TextGenerationHandler"
            )

    async def initialize(self, context: Context) -> None:
        await super().initialize(context)
        wanted, device = self.yaml.device_type, self.llm.describe()["device"]
        if wanted not in (None, CPU) and device == CPU:
            log.warning("deviceType: %s: vLLM has none in this worker, and computes on the CPU", wanted)

    def settings(self) -> EngineSettings:
        from msx_vllm.engine.arguments import known_arguments  # imports vLLM

        folder, section = self.context.model_dir, handler_section(self.context.model_yaml_config)
        given = engine_arguments(section, known_arguments())
        return EngineSettings(
            model_folder(section, folder),
            {**given, **vllm_arguments(self.yaml.vllm)},
            {**packed_adapters(folder, self.yaml.adapters), **adapter_folders(section, folder)},
            chat_template(section, folder),
        )

    async def _predict(self, item: dict[str, Any], context: Context) -> AsyncGenerator[Any, None]:
        """A plain prediction. Raises PredictionError, as TorchServe's, for a path behind the version that is none of
        OpenAI's."""
        if path := context.get_request_header(0, "url_path"):
            raise PredictionError(404, f"Unknown API endpoint: {path}")
        async with aclosing(super()._predict(item, context)) as pieces:
            async for piece in pieces:
                yield piece
