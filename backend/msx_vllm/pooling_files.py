"""Files beside a model of vectors or scores that say what its texts are put into."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msx_core.chat_templates.pair_template import PairTemplate, read_template
from msx_core.config.classification import ClassificationOptions
from msx_core.input_prompts import InputPrompts, pools_prompts, read_prompts
from msx_core.values import show
from msx_sdk.errors import HandlerLoadError

BOTH, ONE = "from_2_way_softmax", "no_post_processing"
"""vLLM's names of ways to make a score of rows of a head: the difference of two, and one."""


class PoolingFiles(NamedTuple):
    prompts: InputPrompts = InputPrompts()
    template: PairTemplate | None = None


NO_FILES = PoolingFiles()


def read_files(folder: Path, options: ClassificationOptions) -> PoolingFiles:
    """Raises HandlerLoadError for files that are not as they should be, and for a model that answers with a word
    without a template for its pairs."""
    prompts = read_prompts(folder, pooled=pools_prompts(folder))
    if options.template is None and options.answers is None:
        return PoolingFiles(prompts)
    template = read_template(folder, options.template, prompts.before(None))
    if template is None:
        raise HandlerLoadError(
            "model-config.yaml, classification.template: needed: the model answers with a word, and its chat template "
            "has no place for messages of the roles query and document"
        )
    return PoolingFiles(prompts, template)


def with_answers(arguments: Mapping[str, Any], answers: list[str] | None) -> dict[str, Any]:
    """Arguments of an engine that scores by words of a language model. Raises HandlerLoadError for overrides that are
    no object."""
    if answers is None:
        return dict(arguments)
    overrides = arguments.get("hf_overrides") or {}
    if isinstance(overrides, str):
        try:
            overrides = json.loads(overrides)
        except ValueError:
            raise HandlerLoadError(f"vllm.hf_overrides: {show(overrides)} is not JSON") from None
    if not isinstance(overrides, dict):
        raise HandlerLoadError(f"vllm.hf_overrides: {show(overrides)} is not an object")
    words = {"classifier_from_token": answers[::-1], "method": BOTH if len(answers) > 1 else ONE}
    return {"runner": "pooling", "convert": "classify", **arguments, "hf_overrides": {**words, **overrides}}
