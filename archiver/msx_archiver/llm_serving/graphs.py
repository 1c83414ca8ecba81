"""llm-serving's pair of MindIR files: whether it can be served, told by its inputs and operators."""

from pathlib import Path

from msx_archiver.errors import PackError
from msx_archiver.llm_serving.config import OPTION, LlmServing
from msx_core.mindir import MindIRError, MindIRSignature, read_signature

PAGED_INPUTS = ("slot_mapping", "block_tables")
PAGED = frozenset({"PagedAttention", "PagedAttentionMask", "ReshapeAndCache"})
LITE = frozenset({"PromptKVCache", "DecoderKVCache", "KVCacheMgr", "PromptFlashAttention", "IncreFlashAttention"})
TOKENS = frozenset({"tokens", "input_ids", "token_ids", "input_tokens"})
OF_THE_TEXT = TOKENS | frozenset(
    {
        *("position", "positions", "position_ids", "current_index", "input_position"),
        *("valid_length", "valid_lengths", "batch_valid_length", "mask", "attention_mask", "input_mask"),
        *("batch_index", "decode_index", "zactivate_len", "init_reset"),
    }
)
"""Names of inputs that are no caches."""

INSTEAD = (
    f"Serve the weights instead, with the same routes: msx-serve {OPTION} config.yaml --huggingface FOLDER, where "
    "FOLDER holds config.json, tokenizer.json and *.safetensors."
)


def graph_pair(config: LlmServing) -> tuple[Path, Path]:
    """The files of prefill and increment. Raises PackError for what is not served, with what helps."""
    if config.model_config.backend == "kbk":
        raise _refused("model_config.backend: kbk runs MindFormers' own code, and no graph")
    for key, files in (("prefill_model", config.prefill), ("decode_model", config.decode)):
        if len(files) > 1:
            raise _refused(
                f"model_path.{key}: {len(files)} files, of as many ranks; a pair of MindIR files has one each"
            )
        if not files:
            raise _refused(f"model_path.{key}: needed, and missing")
    prefill, decode = (Path(files[0]) for files in (config.prefill, config.decode))
    for key, file in (("prefill_model", prefill), ("decode_model", decode)):
        _check(f"model_path.{key}", file)
    return prefill, decode


def _check(key: str, file: Path) -> None:
    if not file.is_file():
        raise _refused(f"{key}: {file} is not there")
    try:
        signature = read_signature(file)
    except MindIRError as error:
        raise _refused(f"{key}: {str(error).rstrip('.')}, as a model of MindSpore Lite is none") from None
    if problem := _problem(signature, caches=key.endswith("decode_model")):
        raise _refused(f"{key}: {file} {problem}")


def _problem(signature: MindIRSignature, *, caches: bool) -> str:
    names = [one.name for one in signature.inputs]
    if paged := [name for name in names if name in PAGED_INPUTS]:
        return f"has the input {paged[0]}, of a paged cache, whose blocks Ascend's operators fill"
    if operators := sorted(signature.op_types & PAGED):
        return f"has the operator {operators[0]}, of a paged cache"
    if operators := sorted(signature.op_types & LITE):
        return f"has the operator {operators[0]}, of MindSpore Lite on Ascend"
    for one in signature.inputs:
        if any(size < 0 for size in one.shape):
            return f"has the input {one.name} with sizes that vary; a graph is served with fixed ones"
    return _without_caches(signature) if caches and not {*names} - OF_THE_TEXT else ""


def _without_caches(signature: MindIRSignature) -> str:
    """Problem of a graph whose caches are not among its inputs: they can be parameters, of one text."""
    if not signature.writes_parameters:
        return "has no caches: none is among its inputs, and no operator writes a parameter"
    texts = max((one.shape[0] for one in signature.inputs if one.name in TOKENS and one.shape), default=1)
    if texts > 1:
        return f"has its caches as parameters, and takes {texts} texts: export it with one, or with caches as inputs"
    return ""


def _refused(problem: str) -> PackError:
    return PackError(f"{OPTION}: {problem}. {INSTEAD}")
