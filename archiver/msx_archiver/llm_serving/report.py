"""Key by key, what becomes of llm-serving's configuration."""

from collections.abc import Iterator, Mapping
from typing import Any

from msx_archiver.llm_serving.config import LlmServing

_INI = "no effect: options of MindSpore Lite's context"
_SAMPLING = "accepted, not needed: the engine samples"
_WAITING = "no effect: texts join and leave between two steps"
_PAGES = "no effect: the engine sizes its own blocks"
_INPUTS = "no effect: inputs are known by their names"
_FOLDER = "no effect: the Hugging Face folder says it"

FATES: dict[str, tuple[str, str]] = {
    "model_path.prefill_model": ("served: the graph of a prompt", "not needed: the Hugging Face folder is served"),
    "model_path.decode_model": ("served: the graph of one token", "not needed: the Hugging Face folder is served"),
    "model_path.argmax_model": (_SAMPLING, _SAMPLING),
    "model_path.topk_model": (_SAMPLING, _SAMPLING),
    "model_path.prefill_ini": (_INI, _INI),
    "model_path.decode_ini": (_INI, _INI),
    "model_path.post_model_ini": (_INI, _INI),
    "model_config.model_name": ("the model's name",) * 2,
    "model_config.max_generate_length": ("maxTotalTokens, where seq_length is not less", _FOLDER),
    "model_config.seq_length": ("maxTotalTokens, by its largest number", _FOLDER),
    "model_config.end_token": ("the end of a text (eos_token_id)", _FOLDER),
    "model_config.vocab_size": ("no effect: the logits say it", _FOLDER),
    "model_config.prefill_batch_size": (_WAITING, _WAITING),
    "model_config.decode_batch_size": ("no effect: the graph says it", "no effect: slotBuckets, or vllm.max_num_seqs"),
    "model_config.zactivate_len": ("no effect",) * 2,
    "model_config.model_type": ("no effect: the graph says it", _FOLDER),
    "model_config.seq_type": ("no effect: the graph says it", _FOLDER),
    "model_config.batch_waiting_time": (_WAITING, _WAITING),
    "model_config.prefill_batch_waiting_time": (_WAITING, _WAITING),
    "model_config.decode_batch_waiting_time": (_WAITING, _WAITING),
    "model_config.batching_strategy": (_WAITING, _WAITING),
    "model_config.current_index": (_INPUTS, _FOLDER),
    "model_config.page_attention": (
        "no effect: the graphs say it; pages are refused",
        "no effect: the engine has pages always",
    ),
    "model_config.model_dtype": ("no effect: the graph says it", _FOLDER),
    "model_config.pad_token_id": ("padToken", _FOLDER),
    "model_config.backend": ("ge", "no effect: the engine is chosen by the folder, or by --engine"),
    "model_config.model_cfg_path": ("no effect: it is MindFormers'", "no effect: it is MindFormers'"),
    "serving_config.agent_ports": ("not opened: workers are processes of the server",) * 2,
    "serving_config.agent_ip": ("no effect: there are no agents' ports",) * 2,
    "serving_config.start_device_id": ("deviceIds",) * 2,
    "serving_config.server_ip": ("inference_address of msx-serve",) * 2,
    "serving_config.server_port": ("inference_address of msx-serve",) * 2,
    "serving_config.prefill_batch_waiting_time": (_WAITING, _WAITING),
    "serving_config.decode_batch_waiting_time": (_WAITING, _WAITING),
    "serving_config.enable_host_post_sampling": (_SAMPLING, _SAMPLING),
    "pa_config.num_blocks": (_PAGES, _PAGES),
    "pa_config.block_size": (_PAGES, _PAGES),
    "pa_config.decode_seq_length": (_PAGES, _PAGES),
    "huggingface": ("the folder of weights",) * 2,
    "tokenizer.type": ("no effect: tokenizer.json says it", _FOLDER),
    "tokenizer.vocab_file": ("tokenizer.json beside it", _FOLDER),
    "basic_inputs.type": (_INPUTS, _INPUTS),
    "extra_inputs.type": (_INPUTS, _INPUTS),
    "warmup_inputs.type": ("no effect: the engine warms up by itself",) * 2,
}
"""Fates of a key where the pair of MindIR files is served, and where a Hugging Face folder is."""

UNKNOWN = "unknown: no effect"


def report(config: LlmServing, given: Mapping[str, Any], *, huggingface: bool) -> Iterator[str]:
    """A line for each key, as `section.key: what became of it`."""
    for key in _keys(given):
        fate = FATES[key][huggingface] if key in FATES else UNKNOWN
        yield f"{key}: {fate}{_more(config, key)}"


def _more(config: LlmServing, key: str) -> str:
    if key == "serving_config.agent_ports" and config.agents > 1:
        return f"; of a model of {config.agents} ranks, parallelType in model-config.yaml says how it is divided"
    if key == "model_config.model_name":
        return f", {config.name}"
    return ""


def _keys(given: Mapping[str, Any]) -> Iterator[str]:
    for section, members in given.items():
        if isinstance(members, Mapping):
            yield from (f"{section}.{name}" for name in members)
        else:
            yield str(section)
