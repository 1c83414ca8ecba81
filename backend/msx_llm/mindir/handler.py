"""`--handler text_generation_mindir`: a language model that was exported as two MindIR files, with its tokenizer.

Its engine is that of `--handler text_generation`; prompts are not cached, nor divided.
"""

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msx_core.config import ModelConfig as YamlConfig
from msx_core.config import SpeculativeOptions, parse_model_config
from msx_core.mindspore.network import Network, load_mindir_file
from msx_core.mindspore.rows import flat
from msx_llm.blocks import BlockPool
from msx_llm.handler import TextGenerator
from msx_llm.limits import EngineLimits
from msx_llm.mindir.inputs import GraphInputs
from msx_llm.mindir.options import SECTION, TwoFiles
from msx_llm.mindir.pool import RowPool
from msx_llm.mindir.runner import ExportedGraph, TwoFileRunner
from msx_llm.mindir.sharing import share_caches
from msx_llm.text.parsers import check_parsers
from msx_sdk import Context, HandlerLoadError, InvalidInput
from msx_sdk.generation import GenerateRequest
from msx_sdk.mindspore import model_file, read_options, setup

log = logging.getLogger("msx.llm")


@dataclass(frozen=True)
class ExportedConfig:
    """Configuration of an exported graph, as the engine reads it: see `EngineConfig`."""

    vocab_size: int
    model_type: str = "mindir"
    stretches: bool = False
    native: int = 0


class MindIRTextGenerator(TextGenerator):
    parallel_types = ()
    packed_with = ("--serialized-file", "tokenizer.json")

    runner: TwoFileRunner
    config: ExportedConfig

    def describe(self) -> dict[str, Any]:
        described = super().describe()
        return {**described, "prefill_tokens": self.runner.prefill_size}

    def _load(self) -> None:
        context = self.context
        setup(context)
        self.yaml = parse_model_config(context.model_yaml_config)[0]
        check_parsers(self.yaml)
        options = read_options(context, SECTION, TwoFiles)
        context.report_progress("reading the two graphs")
        files = _file(context, options.prefill), _file(context, options.increment)
        networks = [load_mindir_file(file, context) for file in files]
        prefill, increment = (_graph(*each, options) for each in zip(files, networks, strict=True))
        shared = not increment.inputs.caches and share_caches(networks[0], networks[1], files[1])
        from msx_llm.mindir.device import MindSporeDevice

        length = context_of(self.yaml, increment.inputs)
        self.runner = TwoFileRunner(
            prefill,
            increment,
            MindSporeDevice(),
            length,
            logits=options.logits,
            pad=options.pad_token,
            shared=shared,
        )
        self.runner.warm_up(lambda shape: context.report_progress(f"compiling {shape}"))
        self.config = ExportedConfig(self.runner.vocab_size)
        self.limits = limits_of(self.yaml, self.runner)

    async def _prepared(self, request: GenerateRequest) -> GenerateRequest:
        if request.params.prompt_logprobs and not self.runner.all_logits:
            raise InvalidInput("prompt_logprobs: the model was exported with the logits of a prompt's last token alone")
        return await super()._prepared(request)

    def _speculative(self) -> SpeculativeOptions | None:
        """Each text has a row of the graph's inputs, and no further ones for drafted tokens."""
        if self.yaml.speculative is not None:
            log.warning("speculative: has no effect on a model of two MindIR files and is ignored")
        return None

    def _pool(self) -> BlockPool | None:
        return RowPool(self.runner.slots, self.runner.context)


def context_of(yaml: YamlConfig, increment: GraphInputs) -> int:
    """How many tokens prompt and text may have. Raises HandlerLoadError where nothing says so."""
    mask, wanted = increment.mask_length, yaml.max_total_tokens
    if wanted is None and mask is None:
        raise HandlerLoadError(
            f"maxTotalTokens: say how many tokens the caches of {increment.file} hold; without a mask among its inputs "
            "its file does not"
        )
    if wanted is not None and mask is not None and wanted > mask:
        raise HandlerLoadError(f"maxTotalTokens: {wanted} is more than the {mask} positions of {increment.file}'s mask")
    return wanted or mask or 0


def limits_of(yaml: YamlConfig, runner: TwoFileRunner) -> EngineLimits:
    """They follow from the graphs. Raises HandlerLoadError if the yaml asks for more."""
    most = min(runner.prefill_size, runner.context - 1)
    if (wanted := yaml.max_input_tokens) is not None and wanted > most:
        raise HandlerLoadError(f"maxInputTokens: {wanted} is more than the {most} tokens of a prompt that was exported")
    return EngineLimits(
        context=runner.context,
        max_input=wanted or most,
        batch_prefill=runner.prefill_size,
        batch_total=runner.slots * runner.context,
        block=runner.context,
        max_concurrent=yaml.max_concurrent,
        slot_buckets=(runner.slots,),
        context_buckets=(runner.context,),
        prefill_buckets=(runner.prefill_size,),
    )


def _file(context: Context, name: str) -> Path:
    """Raises HandlerLoadError for a file that is not in the archive."""
    if not name:
        return model_file(context)
    path = Path(os.path.normpath(context.model_dir / name))  # files of a folder of links are elsewhere
    if not path.is_relative_to(os.path.normpath(context.model_dir)) or not path.is_file():
        raise HandlerLoadError(
            f"the archive has no file {name!r}, which {SECTION} in model-config.yaml names: pack it with --extra-files"
        )
    return path


def _graph(path: Path, network: Network, options: TwoFiles) -> ExportedGraph:
    return ExportedGraph(
        GraphInputs(path.name, network.inputs, options.inputs), lambda tensors: list(flat(network.run(*tensors)))
    )
