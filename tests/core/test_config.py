from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_core import config as module
from msx_core.config import (
    AutoscalingOptions,
    ConfigError,
    LauncherOptions,
    MindSporeOptions,
    ModelConfig,
    ParallelSplit,
    ServableOptions,
    load_model_config,
    parse_model_config,
)
from msx_core.config.sections import names_of
from msx_core.config.vllm_section import vllm_arguments

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "model-configs").glob("*.yaml"))
DOCS = (ROOT / "docs" / "model-config.md").read_text()


def parse(**keys: Any) -> ModelConfig:
    config, warnings = parse_model_config(keys)
    assert warnings == []
    return config


def message(**keys: Any) -> str:
    with pytest.raises(ConfigError) as info:
        parse_model_config({k.replace("__", "-"): v for k, v in keys.items()})
    return str(info.value)


def test_nothing_given_is_torchserves_defaults() -> None:
    config = parse()
    assert (config.batch_size, config.max_batch_delay, config.response_timeout) == (1, 100, 120)
    assert (config.startup_timeout, config.max_retry_timeout_in_sec, config.job_queue_size) == (120, 300, 100)
    assert config.min_workers is None
    assert config.layout == (1, 0, 1, 1)
    assert config.explicit == frozenset()


def test_every_key_of_torchserve_is_read_under_its_name() -> None:
    mapping = {
        "minWorkers": 1, "maxWorkers": 2, "batchSize": 3, "maxBatchDelay": 4, "responseTimeout": 5, "startupTimeout": 6,
        "deviceType": "gpu", "deviceIds": [3, 1], "maxRetryTimeoutInSec": 7, "clientTimeoutInMills": 8,
        "jobQueueSize": 9, "useJobTicket": True, "sequenceBatching": True, "sequenceMaxIdleMSec": 10,
        "sequenceTimeoutMSec": 11, "maxNumSequence": 12, "maxSequenceJobQueueSize": 13, "continuousBatching": True,
        "asyncCommunication": True, "useVenv": True, "parallelType": "pp",
        "torchrun": {
            "nnodes": 1, "nproc-per-node": 2, "rdzv-backend": "static", "rdzv-endpoint": "h:1", "rdzv-conf": "k=v",
            "monitor-interval": 6, "node-rank": 0, "OMP_NUMBER_THREADS": 3,
        },
    }  # fmt: skip
    config = parse(**mapping)
    dumped = msgspec.to_builtins(config)
    assert {key: dumped[key] for key in mapping if key != "deviceIds"} == {
        key: value for key, value in mapping.items() if key != "deviceIds"
    }
    assert config.device_ids == (3, 1)
    assert config.raw == mapping


def test_fields_that_were_given_are_known() -> None:
    config = parse(batchSize=1, maxBatchDelay=None, handler={"profile": True})
    assert config.explicit == {"batch_size"}


def test_other_keys_reach_the_handler_untouched() -> None:
    mapping = {"handler": {"model_path": "x"}, "micro_batching": {"micro_batch_size": 4}, "raw": 1, "explicit": 2, 3: 4}
    config, warnings = parse_model_config(mapping)  # type: ignore[arg-type]
    assert config.raw == mapping
    assert warnings == []


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("batchSize", "eight", "batchSize: 'eight' is not an integer of 1 or more"),
        ("batchSize", True, "batchSize: True is not an integer of 1 or more"),
        ("batchSize", 0, "batchSize: 0 is not an integer of 1 or more"),
        ("batchSize", 8.0, "batchSize: 8.0 is not an integer of 1 or more"),
        ("maxBatchDelay", -1, "maxBatchDelay: -1 is not an integer of 0 or more"),
        ("useJobTicket", "yes", "useJobTicket: 'yes' is not true or false"),
        ("useJobTicket", 1, "useJobTicket: 1 is not true or false"),
        ("parallelType", "dp", "parallelType: 'dp' is not one of pp, tp, pptp, custom"),
        ("deviceType", "tpu", "deviceType: 'tpu' is not one of npu, gpu, cpu"),
        ("batchingPolicy", "static", "batchingPolicy: 'static' is not one of dynamic, fixed"),
        ("deviceIds", "0,1", "deviceIds: '0,1' is not a list of device numbers"),
        ("deviceIds", [0, "1"], "deviceIds: [0, '1'] is not a list of device numbers"),
        ("deviceIds", [-1], "deviceIds: [-1] is not a list of device numbers"),
        ("deviceIds", [], "deviceIds: [] is not a list of device numbers"),
        ("warmup", "please", "warmup: 'please' is not true or false or a list of request inputs"),
        ("rankSkewTimeout", 0, "rankSkewTimeout: 0 is not a number of seconds above 0"),
        ("rankSkewTimeout", float("nan"), "rankSkewTimeout: nan is not a number of seconds above 0"),
        ("torchrun", 4, "torchrun: 4 is not a mapping with keys nnodes, nproc-per-node, rdzv-backend, "),
        ("torchrun", {"nproc-per-node": "two"}, "torchrun.nproc-per-node: 'two' is not an integer of 1 or more"),
        ("mindspore", {"mode": "eager"}, "mindspore.mode: 'eager' is not one of graph, pynative"),
        ("mindspore", {"isa": "AVX2;rm"}, "mindspore.isa: 'AVX2;rm' is not the name of an instruction set"),
        ("parallel", {"pipelineStages": 0}, "parallel.pipelineStages: 0 is not an integer of 1 or more"),
        ("slotBuckets", [], "slotBuckets: [] is not a list of 1 to 12 sizes"),
        ("contextBuckets", [0], "contextBuckets: [0] is not a list of 1 to 12 sizes"),
        ("aliases", "gpt-4", "aliases: 'gpt-4' is not a list of names"),
        ("aliases", ["gpt-4", 4], "aliases: ['gpt-4', 4] is not a list of names"),
        ("imageRange", 4095, "imageRange: 4095 is not a list of two numbers: the sample that is black, and the one"),
        ("imageRange", [0], "imageRange: [0] is not a list of two numbers"),
        ("imageRange", [0, True], "imageRange: [0, True] is not a list of two numbers"),
    ],
)
def test_a_wrong_type_names_key_value_and_expectation(key: str, value: object, text: str) -> None:
    assert message(**{key: value}).startswith(text)


def test_a_huge_wrong_value_is_shown_in_brief() -> None:
    value: Any = ["x" * 1000]
    for _ in range(40):
        value = [value] * 9
    assert len(message(batchSize=value)) < 1000


MSRUN2 = {"nproc-per-node": 2}
MSRUN4 = {"nproc-per-node": 4}


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"minWorkers": 3, "maxWorkers": 2}, "minWorkers: 3 is more than maxWorkers: 2"),
        ({"torchrun": MSRUN2, "msrun": MSRUN2, "parallelType": "tp"}, "torchrun and msrun say the same"),
        (
            {"msrun": MSRUN2, "parallelLevel": 2, "parallelType": "tp"},
            "msrun.nproc-per-node: 2 and parallelLevel: 2 both give the size of a group",
        ),
        ({"msrun": {"nnodes": 2}}, "nnodes or parallel.nodes: 2 needs parallelType"),
        (
            {"parallelType": "custom", "parallelLevel": 2, "parallel": {"nodes": 2}},
            "parallelType: 'custom' is one process, which cannot be on 2 nodes",
        ),
        (
            {"parallelType": "tp", "msrun": {"nnodes": 2, "nproc-per-node": 2}, "parallel": {"nodes": 4}},
            "parallel.nodes: 4 and msrun.nnodes: 2 contradict each other",
        ),
        (
            {"parallelType": "tp", "parallelLevel": 3, "parallel": {"nodes": 2}},
            "parallel.nodes: 3 ranks cannot be ",
        ),
        (
            {"parallelType": "pp", "parallelLevel": 2, "parallel": {"nodes": 2}, "placement": "stagesApart"},
            "placement: stagesApart and 2 nodes (nnodes or parallel.nodes) both say",
        ),
        ({"parallelType": "tp", "msrun": MSRUN2, "placement": "stagesApart"}, "placement: stagesApart needs"),
        ({"parallelType": "tp", "msrun": MSRUN2, "placement": "near"}, "placement: 'near' is not one of pack, spread"),
        ({"msrun": {"node-rank": 1}, "parallelType": "tp"}, "msrun.node-rank: 1 is not below nnodes: 1"),
        ({"msrun": MSRUN2}, "msrun.nproc-per-node: 2 needs parallelType"),
        ({"parallel": {"tensorParallel": 2}}, "parallel: needs parallelType"),
        ({"parallelType": "pp"}, "parallelType: 'pp' needs msrun.nproc-per-node"),
        ({"parallelType": "custom"}, "parallelType: 'custom' needs parallelLevel"),
        ({"parallelType": "pptp", "msrun": MSRUN4}, "parallelType: 'pptp' needs parallel:"),
        (
            {"parallelType": "pptp", "msrun": MSRUN4, "parallel": {"pipelineStages": 3, "tensorParallel": 2}},
            "parallel: pipelineStages 3 times tensorParallel 2 is 6, not the group's size, 4",
        ),
        ({"parallelType": "pptp", "msrun": MSRUN4, "parallel": {"tensorParallel": 3}}, "parallel: pipelineStages 1 "),
        ({"parallelType": "pp", "msrun": MSRUN4, "parallel": {"pipelineStages": 2}}, "parallel: pipelineStages 2 "),
        (
            {"parallelType": "tp", "msrun": MSRUN4, "parallel": {"pipelineStages": 2}},
            "parallel.pipelineStages: 2 does not fit parallelType: 'tp'",
        ),
        (
            {"parallelType": "pp", "msrun": MSRUN4, "parallel": {"tensorParallel": 2}},
            "parallel.tensorParallel: 2 does not fit parallelType: 'pp'",
        ),
        ({"deviceIds": [0, 1, 0]}, "deviceIds: [0, 1, 0] names device 0 twice"),
        (
            {"deviceIds": [0], "parallelType": "tp", "msrun": MSRUN2},
            "deviceIds: [0] has 1 devices, and one worker group needs 2",
        ),
        (
            {"maxInputTokens": 9, "maxTotalTokens": 9},
            "maxInputTokens: 9 leaves no room for an answer within maxTotalTokens: 9",
        ),
        ({"example": 1, "warmup": [1]}, "example and warmup both give the requests of the warm-up"),
        ({"expected": {"outputs": 1}}, "expected: has no example: give the request that it answers as example"),
        ({"expected": {"outputs": 1}, "example": 1, "warmup": False}, "expected: is compared at warm-up, which warmup"),
        ({"expected": {"tolerance": 0.1}, "example": 1}, "expected: has no outputs: give the reply to example: as"),
        (
            {"expected": {"outputs": [1]}, "example": [1, 2]},
            "expected.outputs: is not a list of 2 replies, one for each request of example",
        ),
        ({"expected": {"outputs": 1, "tolerance": 0}, "example": 1}, "expected.tolerance: 0 is not a number above 0"),
        ({"batchTolerance": 2}, "batchTolerance: 2 is not a number above 0, and at most 1"),
        ({"batchCheck": "no"}, "batchCheck: 'no' is not true or false"),
        (
            {"slotBuckets": [1, 2, 4, 8], "contextBuckets": [1, 2, 3, 4]},
            "slotBuckets and contextBuckets: 4 times 4 sizes are 16 graphs to compile, and at most 12 are allowed",
        ),
        ({"aliases": ["a", "a"]}, "aliases: has 'a' twice"),
        ({"aliases": ["/a"]}, "aliases: has '/a', which must begin with a letter or digit"),
        ({"imageRange": [9, 9]}, "imageRange: [9.0, 9.0] must be two finite numbers, the lower one first"),
        ({"imageRange": [0, float("inf")]}, "imageRange: [0.0, inf] must be two finite numbers, the lower one first"),
    ],
)
def test_an_impossible_combination_is_refused(keys: dict[str, Any], text: str) -> None:
    assert message(**keys).startswith(text)


@pytest.mark.parametrize(
    ("keys", "layout"),
    [
        ({"parallelType": "pp", "msrun": MSRUN4}, (4, 4, 4, 1)),
        ({"parallelType": "tp", "torchrun": MSRUN4}, (4, 4, 1, 4)),
        ({"parallelType": "tp", "parallelLevel": 4}, (4, 4, 1, 4)),
        ({"parallelType": "tp", "torchrun": {}}, (1, 1, 1, 1)),
        ({"parallelType": "tp", "torchrun": MSRUN2, "parallelLevel": 2}, (2, 2, 1, 2)),
        ({"parallelType": "custom", "parallelLevel": 8}, (1, 8, 1, 1)),
        ({"parallelType": "custom", "torchrun": MSRUN4}, (1, 4, 1, 1)),
        ({"parallelType": "pptp", "parallel": {"pipelineStages": 2, "tensorParallel": 3}}, (6, 6, 2, 3)),
        ({"parallelType": "pptp", "msrun": MSRUN4, "parallel": {"pipelineStages": 2}}, (4, 4, 2, 2)),
        ({"parallelType": "pp", "parallel": {"pipelineStages": 3}}, (3, 3, 3, 1)),
        ({"torchrun": {"nproc-per-node": 1}}, (1, 0, 1, 1)),
    ],
)
def test_layout_of_a_group(keys: dict[str, Any], layout: tuple[int, ...]) -> None:
    assert parse(**keys).layout == layout


def test_torchruns_processes_count_whatever_the_level_says() -> None:
    """TorchServe's rule, for its files."""
    config, _ = parse_model_config({"parallelType": "tp", "parallelLevel": 4, "torchrun": MSRUN2})
    assert config.layout.ranks == 2


def test_each_number_of_workers_alone() -> None:
    """`parse` sees no warning: `minWorkers` alone has its effect."""
    config = parse(minWorkers=3)
    assert (config.min_workers, config.max_workers) == (3, None)
    config, warnings = parse_model_config({"maxWorkers": 3})
    assert (config.min_workers, config.max_workers) == (None, 3)
    assert warnings == ["maxWorkers: 3 has no effect without minWorkers above 0"]
    assert parse(minWorkers=3, maxWorkers=3).max_workers == 3


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("batchsize", "batchSize"),
        ("max_batch_delay", "maxBatchDelay"),
        ("batch-size", "batchSize"),
        ("Batch Size", "batchSize"),
        ("responseTimeOut", "responseTimeout"),
        ("maxBatchDeley", "maxBatchDelay"),
        ("minWorker", "minWorkers"),
    ],
)
def test_a_near_miss_warns_with_the_right_name(key: str, meant: str) -> None:
    config, warnings = parse_model_config({key: 4})
    assert warnings == [f"{key}: is not a known key and is ignored; did you mean {meant}?"]
    assert config.raw == {key: 4}


def test_unknown_keys_of_a_section_warn() -> None:
    keys = {"parallelType": "tp", "parallelLevel": 2, "torchrun": {"nproc_per_node": 2, "tee": 3}}
    _, warnings = parse_model_config(keys)
    assert warnings[0] == "torchrun.nproc_per_node: is not a known key and is ignored; did you mean nproc-per-node?"
    assert warnings[1].startswith("torchrun.tee: is not a key of torchrun (nnodes, nproc-per-node, ")
    assert len(warnings) == 2


@pytest.mark.parametrize(
    "keys",
    [
        {"maxWorkers": 2},
        {"parallelLevel": 2},
        {"sequenceBatching": True},
        {"parallelType": "custom", "parallelLevel": 2, "parallel": {"tensorParallel": 2}},
        {"parallelType": "tp", "parallelLevel": 4, "torchrun": MSRUN2},
        {"workersPerDevice": 2, "deviceType": "cpu"},
    ],
)
def test_a_key_without_effect_warns(keys: dict[str, Any]) -> None:
    _, warnings = parse_model_config(keys)
    assert len(warnings) == 1
    assert "has no effect with" in warnings[0]


def test_an_interpreter_has_a_name_and_no_path() -> None:
    assert parse(python="vllm-0.32").python == "vllm-0.32"
    for value in ("/opt/vllm/bin/python", "", "a" * 65, 3.11, "-x", "a b"):
        with pytest.raises(
            ConfigError, match=r"python: .* is not the name of an interpreter in the server's key pytho"
        ):
            parse(python=value)


def test_modes_that_are_served_do_not_warn() -> None:
    keys = {"useVenv": True, "continuousBatching": True, "sequenceBatching": True, "sequenceMaxIdleMSec": 10}
    assert parse_model_config(keys)[1] == []


def test_the_callers_wish_beats_the_file_and_the_file_beats_the_servers_default() -> None:
    config = parse(batchSize=4, responseTimeout=10)
    config = config.with_defaults(response_timeout=60, startup_timeout=90, job_queue_size=None)
    config = config.with_overrides(batch_size=8, max_batch_delay=None)
    assert (config.batch_size, config.max_batch_delay) == (8, 100)
    assert (config.response_timeout, config.startup_timeout) == (10, 90)
    assert config.explicit == {"batch_size", "response_timeout"}


def test_overrides_are_checked() -> None:
    with pytest.raises(ConfigError, match="batch_size: '8' is not an integer"):
        parse().with_overrides(batch_size="8")
    with pytest.raises(ConfigError, match="minWorkers: 4 is more than maxWorkers: 2"):
        parse(minWorkers=1, maxWorkers=2).with_overrides(min_workers=4)


def test_stateful_needs_an_idle_limit() -> None:
    assert parse(sequenceBatching=True, sequenceMaxIdleMSec=10).stateful
    assert not parse().stateful


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str | bytes], ModelConfig]:
    def write(text: str | bytes) -> ModelConfig:
        path = tmp_path / "model-config.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_model_config(path)[0]

    return write


Load = Callable[[str | bytes], ModelConfig]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("batchSize: [1, 2\nminWorkers: 1\n", "line 2, column"),
        ("batchSize: 1\nminWorkers: 1\nbatchSize: 2\n", "batchSize: is given twice, in line 1 and in line 3"),
        ("torchrun: {nnodes: 1, nnodes: 1}", "nnodes: is given twice, in line 1 and in line 1"),
        ("[1, 2]", "[1, 2] is not a mapping"),
        ("just text", "'just text' is not a mapping"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1: but found another document"),
        ("x: !!python/object/apply:os.system [ls]", "line 1, column 4: could not determine a constructor"),
        ("? [a]\n: 1", "line 1"),
        (b"\xff\xfe\xff", "is not YAML"),
        (b"a: \x00", "is not YAML"),
        ("[" * 100_000 + "]" * 100_000, "is nested more than 100 levels deep"),
        ("batchSize: eight", "batchSize: 'eight' is not an integer"),
    ],
)
def test_a_file_that_cannot_be_meant_is_named(load: Load, tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as info:
        load(text)
    assert str(info.value).startswith(f"{tmp_path}/model-config.yaml: {expected}")


def test_merges_cannot_grow_without_limit(load: Load) -> None:
    lines = ["l0: &l0 {a: 1, b: 2, c: 3}"]
    lines += [f"l{i}: &l{i}\n  <<: [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(ConfigError, match="more than 10000 keys in one mapping"):
        load("\n".join(lines))


def test_an_overridden_merge_is_not_a_duplicate(load: Load) -> None:
    text = "deep: {er: {base: &b {<<: &a {x: 1}, x: 2}}}\ntop: {<<: *b, y: 1}\n"
    assert load(text).raw == {"deep": {"er": {"base": {"x": 2}}}, "top": {"x": 2, "y": 1}}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_an_empty_file_is_all_defaults(load: Load, text: str) -> None:
    assert load(text) == ModelConfig()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot be read: No such file or directory"):
        load_model_config(tmp_path / "absent.yaml")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_loads_without_a_warning(path: Path) -> None:
    config, warnings = load_model_config(path)
    assert warnings == []
    assert config.explicit
    assert f"model-configs/{path.name}" in DOCS


def test_there_are_examples() -> None:
    names = {path.stem for path in EXAMPLES}
    assert names >= {"single-worker", "dynamic-batching", "job-ticket", "streaming"}
    assert names >= {"llama-tp2", "llama-pp2", "llama-pptp4", "custom-devices"}


@pytest.mark.parametrize(
    ("cls", "prefix"),
    [
        (ModelConfig, ""),
        (LauncherOptions, "msrun."),
        (ParallelSplit, "parallel."),
        (MindSporeOptions, "mindspore."),
        (ServableOptions, "servable."),
        (AutoscalingOptions, "autoscaling."),
    ],
)
def test_every_key_is_in_the_docs(cls: type[msgspec.Struct], prefix: str) -> None:
    missing = [name for name in names_of(cls) if f"| `{prefix}{name}` |" not in DOCS]
    assert missing == []


def test_public_names() -> None:
    assert module.__all__ == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_what_the_handler_could_not_be_given() -> None:
    with pytest.raises(ConfigError, match=r"seed: .* is an integer of more than 64 bits"):
        parse_model_config({"sampling": [{"x": 1}], "seed": [{"of": 2**70}]})


def test_aliases_that_grow_without_end_are_refused() -> None:
    """Ten lists of ten references: small in the file, 10**10 values for the handler."""
    value: list[Any] = ["lol"]
    for _ in range(10):
        value = [value] * 10
    with pytest.raises(ConfigError, match="laughs: with its aliases expanded"):
        parse_model_config({"laughs": value})


@pytest.mark.parametrize(
    ("keys", "ranks", "nodes"),
    [
        ({"msrun": {"nnodes": 2, "nproc-per-node": 4}}, 8, 2),
        ({"torchrun": {"nnodes": 2}}, 2, 2),
        ({"parallelLevel": 4, "msrun": {"nnodes": 2}}, 4, 2),
        ({"parallelLevel": 4, "parallel": {"nodes": 2}}, 4, 2),
        ({"msrun": MSRUN4, "parallel": {"nodes": 2}}, 4, 2),
        ({"msrun": MSRUN4}, 4, 1),
    ],
)
def test_ranks_on_several_nodes(keys: dict[str, Any], ranks: int, nodes: int) -> None:
    """`nproc-per-node` is what it says; the other keys give the size of the whole group."""
    config = parse(parallelType="tp", **keys)
    assert (config.layout.ranks, config.nodes) == (ranks, nodes)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"workersPerDevice": 0}, "workersPerDevice: 0 is not a number of workers from 1 to 8"),
        ({"workersPerDevice": 9}, "workersPerDevice: 9 is not a number of workers from 1 to 8"),
        ({"workersPerDevice": 2, "exclusiveDevices": True}, "workersPerDevice: 2 and exclusiveDevices contradict"),
        (
            {"workersPerDevice": 1, "parallelType": "tp", "parallelLevel": 2, "shareDevices": True},
            "parallelType: tp makes groups: leave it out; groups share devices by shareDevices: true",
        ),
        ({"workersPerDevice": 1, "parallelType": "custom", "parallelLevel": 1}, "parallelType: custom makes groups"),
    ],
)
def test_workers_per_device_are_of_one_process(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_model_config(keys)
    assert parse(workersPerDevice=2).workers_per_device == 2
    assert parse(workersPerDevice=1, exclusiveDevices=True).workers_per_device == 1


def test_placement_without_a_group() -> None:
    assert parse_model_config({"placement": "spread"})[1] == [
        "placement: spread has no effect without parallelType: a worker of one process is on one node anyway"
    ]


PLUGIN = "structured_outputs_config.reasoning_parser_plugin"


@pytest.mark.parametrize(
    ("section", "told"),
    [
        (5, "vllm: 5 is not a mapping of arguments of vLLM's engine to their values"),
        ({1: 2}, "vllm: 1 is not the name of an argument"),
        ({"model": "m"}, "vllm.model: a model cannot give it: the server fetches"),
        ({"trust-remote-code": True}, "vllm.trust-remote-code: a model cannot give it: it would run code"),
        ({"kv_transfer_config.kv_port": 5}, "vllm.kv_transfer_config.kv_port: a model cannot give it: the server says"),
        ({"max-model-len": 1, "max_model_len": 2}, "vllm.max_model_len: is given twice, with dashes"),
        ({"ec-manager-config": {}}, "vllm.ec-manager-config: a model cannot give it: it would run code"),
        *(
            (section, f"vllm.{member}: a model cannot give it: it would run code that the files of a model name")
            for section, member in [
                ({"structured-outputs-config": {"reasoning_parser_plugin": "/a.py"}}, PLUGIN),
                ({"structured_outputs_config": '{"reasoning_parser_plugin": "/a.py"}'}, PLUGIN),
                ({"structured-outputs-config.reasoning_parser_plugin": "/a.py"}, PLUGIN),
                ({"compilation-config": {"backend": "a.f"}}, "compilation_config.backend"),
                ({"compilation-config.inductor_passes.p+": "a.f"}, "compilation_config.inductor_passes"),
                ({"speculative-config": {"method": "custom_class", "model": "a.F"}}, "speculative_config.method"),
                ({"speculative-config": {"model": "a.F"}}, "speculative_config.model"),
                ({"spec-method": "custom_class"}, "speculative_config.method"),
                ({"spec-model": "a.F"}, "speculative_config.model"),
            ]
        ),
    ],
)  # fmt: skip
def test_arguments_of_vllm_that_a_model_cannot_give(section: Any, told: str) -> None:
    assert message(vllm=section).startswith(told)


@pytest.mark.parametrize(
    "section",
    [
        {"compilation-config": {"backend": "inductor", "mode": 3}},
        {"compilation-config": "no JSON"},
        {"speculative-config": {"method": "eagle", "model": "a.b"}},
        {"speculative-config.model": "/drafts/a.b"},
        {"structured_outputs_config": {"backend": "xgrammar"}},
    ],
)
def test_arguments_of_vllm_without_code(section: Any) -> None:
    assert parse(vllm=section).vllm == section


def test_arguments_of_vllm_may_have_dashes() -> None:
    config = parse(vllm={"--max-model-len": "8k", "enforce_eager": None, "compilation-config.mode": 3})
    assert vllm_arguments(config.vllm) == {"max_model_len": "8k", "compilation_config.mode": 3}
