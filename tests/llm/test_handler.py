"""How the handler joins runner and engine. What clients get is in tests/e2e and tests/contract."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from msx_core.config import parse_model_config
from msx_core.mindspore import graph_cache
from msx_llm import handler, measured_plan
from msx_llm.draft_loading import draft_weights
from msx_llm.handler import TextGenerator
from msx_llm.limits import EngineLimits
from msx_llm.measured_plan import MeasuredPlan
from msx_llm.memory import MIB
from msx_llm.models.config import DecoderConfig
from msx_llm.paged import PagedPool
from msx_llm.planning import planned, pool_of
from msx_llm.state_pool import StatePool
from msx_sdk.context import Context, ModelInfo
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore import Parallel
from tests.llm.models.test_config import read
from tests.llm.runners import limits


def test_pages_are_shared_where_the_device_has_them() -> None:
    paged = SimpleNamespace(assign=lambda slot, blocks: None, block=128, blocks=9)
    pool = pool_of(paged, 4)
    assert isinstance(pool, PagedPool)
    assert (pool.block, pool.total) == (128, 8)


def test_elsewhere_the_engine_has_its_way() -> None:
    assert pool_of(SimpleNamespace(), 4) is None


def test_states_have_a_pool_of_their_own() -> None:
    pool = pool_of(SimpleNamespace(keeps_states=True, limits=limits(slots=(3,))), 3)
    assert isinstance(pool, StatePool)
    assert (pool.block, pool.total) == (16, 12)
    assert pool_of(SimpleNamespace(keeps_states=False, limits=limits()), 4) is None


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """How much the weights took whenever the device was asked, and what graphs were said to depend on."""
    asked: list[Any] = []

    def measured(yaml: object, parallel: object, weights: int) -> int:
        asked.append(weights)
        return MIB // 2

    monkeypatch.setattr(measured_plan, "measured_budget", measured)
    monkeypatch.setattr(measured_plan, "keep_graphs", lambda context, key: asked.append(f"tries {key}"))
    monkeypatch.setattr(graph_cache, "settle", asked.append)
    return asked


def plan_of(folder: Path, config: DecoderConfig, parallel: Parallel, **keys: Any) -> Callable[[int], EngineLimits]:
    return planned(Context(ModelInfo("m", model_dir=folder)), parse_model_config(keys)[0], config, parallel)


def test_a_device_is_asked_beside_the_weights(tmp_path: Path, asked: list[Any]) -> None:
    config = read(tmp_path, num_key_value_heads=1, torch_dtype="float16")
    plan = plan_of(tmp_path, config, Parallel(target="Ascend"))
    assert asked == []
    found = plan(1000)
    assert found.context == 512
    assert found.slots == MIB // 2 // (config.token_bytes(target="Ascend") * 512)
    assert asked == [1000, str(found)]


def test_a_trial_is_planned_beside_the_weights_alone(tmp_path: Path, asked: list[Any]) -> None:
    """Its graphs are the first ones, so that all are kept where it says."""
    config, said = read(tmp_path, num_key_value_heads=1, torch_dtype="float16"), list[str]()
    context = Context(ModelInfo("m", model_dir=tmp_path))
    context.report_progress = said.append
    plan = planned(context, parse_model_config({})[0], config, Parallel(target="Ascend"))
    assert isinstance(plan, MeasuredPlan)
    found = plan.of_trial(1000)
    assert found == plan(1000)
    assert asked == [1000, f"tries {found}", 1000, str(found)]
    assert said == ["trying the largest step"]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_small_model_for_drafts_is_beside_the_first_rank(tmp_path: Path, asked: list[Any], rank: int) -> None:
    """Its weights; the cache of both has the same tokens on all ranks."""
    config, parallel = read(tmp_path, num_key_value_heads=1, torch_dtype="float16"), Parallel(rank, 1, 2, "Ascend")
    context, yaml = Context(ModelInfo("m", model_dir=tmp_path)), parse_model_config({})[0]
    found = planned(context, yaml, config, parallel, config)(1000)
    token = config.token_bytes(1, 2, "Ascend") + config.token_bytes(target="Ascend")
    assert found.slots == MIB // 2 // (token * found.context)
    assert asked[0] == 1000 + draft_weights(config, parallel)
    assert (asked[0] == 1000) == bool(rank)


@pytest.mark.parametrize(("target", "keys"), [("CPU", {}), ("Ascend", {"cacheMemory": 4})])
def test_what_is_known_is_not_asked_for(tmp_path: Path, asked: list[Any], target: str, keys: dict[str, Any]) -> None:
    plan_of(tmp_path, read(tmp_path), Parallel(target=target), **keys)(1000)
    assert asked == []


def test_what_cannot_be_is_said_before_weights_are_read(tmp_path: Path, asked: list[Any]) -> None:
    with pytest.raises(HandlerLoadError, match="maxTotalTokens: 513 is more than the model's context of 512 tokens"):
        plan_of(tmp_path, read(tmp_path), Parallel(target="Ascend"), maxTotalTokens=513)
    assert asked == []


def test_more_ranks_than_key_value_heads_have_room(tmp_path: Path) -> None:
    config = read(tmp_path, num_key_value_heads=1)
    yaml: dict[str, Any] = {"parallelType": "tp", "msrun": {"nproc-per-node": 2}, "cacheMemory": 4}
    assert plan_of(tmp_path, config, Parallel(tp_size=2), **yaml)(0).context == 512


@pytest.mark.parametrize(("keys", "chooses"), [({}, True), ({"deviceSampling": False}, False)])
def test_the_runner_is_told_who_chooses_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], chooses: bool
) -> None:
    given: dict[str, Any] = {}

    def load_runner(*args: Any, **options: Any) -> Any:
        given.update(options)
        return SimpleNamespace(limits=None, warm_up=lambda report: None)

    read(tmp_path)
    monkeypatch.setattr(handler, "init_parallel", lambda context: Parallel())
    monkeypatch.setitem(sys.modules, "msx_llm.runner", SimpleNamespace(load_runner=load_runner))
    TextGenerator().initialize(Context(ModelInfo("m", model_dir=tmp_path, config=keys, rank=1, world_size=2)))
    assert given["chooses"] is chooses
