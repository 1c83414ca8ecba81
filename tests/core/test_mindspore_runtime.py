"""MindSpore's set-up, on a stand-in for MindSpore; one test runs the real one in a process of its own."""

import gc
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from msx_core.config import ConfigError
from msx_core.framework_device import FrameworkDevice
from msx_core.mindir import MindIRError, MindIRSignature
from msx_core.mindspore import runtime as runtime
from msx_sdk.context import Context, ModelInfo
from msx_sdk.mindspore import setup

FAKE = FrameworkDevice("Fake", "libfake.so")
ISA = "ONEDNN_MAX_CPU_ISA"


@pytest.fixture
def ms(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """A MindSpore that is imported, on a machine without CANN, and without a quota of its cores."""
    fake = MagicMock(GRAPH_MODE=0, PYNATIVE_MODE=1)
    monkeypatch.setitem(sys.modules, "mindspore", fake)
    monkeypatch.setattr(runtime, "loads", lambda library: False)
    monkeypatch.setattr(runtime, "cores_by_quota", lambda: None)
    return fake


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Environment that set-up sees and changes instead of the tests' own."""
    environ: dict[str, str] = {}
    monkeypatch.setattr("msx_core.mindspore.runtime.os", SimpleNamespace(environ=environ))
    return environ


def context(serialized: str = "", config: Any = None, **info: Any) -> Context:
    manifest = {"model": {"serializedFile": serialized}}
    return Context(ModelInfo("m", manifest=manifest, config=config or {}, **info))


def operators(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    signature = MindIRSignature([], [], frozenset(names), frozenset(), "", "", "")
    monkeypatch.setattr(runtime, "read_signature", lambda path: signature)


def test_on_a_cpu_operators_are_launched_one_after_the_other(ms: MagicMock, environ: dict[str, str]) -> None:
    assert setup(context()) == "CPU"
    ms.runtime.launch_blocking.assert_called_once_with()
    ms.set_device.assert_not_called()
    ms.set_context.assert_not_called()
    assert environ == {"GLOG_v": "3"}


@pytest.mark.parametrize(
    ("options", "ranks", "expected"),
    [({}, 1, 3), ({"threads": 2}, 1, 2), ({}, 2, None)],  # of a group, each rank has one
)
def test_threads_follow_the_time_that_a_cgroup_gives(
    ms: MagicMock, monkeypatch: pytest.MonkeyPatch, options: Any, ranks: int, expected: int | None
) -> None:
    monkeypatch.setattr(runtime, "cores_by_quota", lambda: 3)
    setup(context(config={"mindspore": options}, world_size=ranks))
    asked = [call.args[0] for call in ms.device_context.cpu.op_tuning.threads_num.call_args_list]
    assert asked == ([] if expected is None else [expected])


def test_a_device_is_taken_where_its_library_loads(ms: MagicMock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "loads", lambda library: True)
    assert setup(context(device_id=0, framework_device=FAKE)) == "Fake"
    ms.set_device.assert_called_once_with("Fake", 0)
    ms.runtime.launch_blocking.assert_not_called()


def test_a_simulated_device_is_a_cpu(ms: MagicMock) -> None:
    assert setup(context(device_id=1, framework_device=FAKE)) == "CPU"
    ms.set_device.assert_not_called()


@pytest.mark.parametrize(
    ("device", "warned"),
    [({}, False), ({"device_id": 1, "framework_device": FAKE}, False), ({"device_id": 0}, True)],
)
def test_a_device_that_mindspore_cannot_use_is_told(
    ms: MagicMock, caplog: pytest.LogCaptureFixture, device: Any, warned: bool
) -> None:
    """A simulated one is no surprise."""
    assert setup(context(**device)) == "CPU"
    assert ["computes on the CPU" in message for message in caplog.messages] == [True] * warned


@pytest.mark.parametrize("device", [{}, {"framework_device": FAKE}, {"device_id": 0}])
def test_without_a_device_that_mindspore_knows_none_is_taken(
    ms: MagicMock, monkeypatch: pytest.MonkeyPatch, device: Any
) -> None:
    monkeypatch.setattr(runtime, "loads", lambda library: True)
    assert setup(context(**device)) == "CPU"
    ms.set_device.assert_not_called()


def test_a_library_is_looked_for_by_loading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        asked.append(name)
        raise OSError

    asked: list[str] = []
    monkeypatch.setattr(runtime, "ctypes", SimpleNamespace(CDLL=load))
    assert not runtime.loads(FAKE.library)
    assert asked == ["libfake.so"]


@pytest.mark.parametrize(
    ("options", "names", "expected"),
    [
        ({}, ("Conv2D", "ReLU"), "AVX2"),
        ({"isa": "auto"}, ("Conv2DTranspose",), "AVX2"),
        ({}, ("MatMul",), None),
        ({"isa": "AVX512_CORE"}, ("Conv2D",), "AVX512_CORE"),
        ({"isa": "AVX2"}, ("MatMul",), "AVX2"),
    ],
)
def test_the_instruction_set_follows_the_operators_of_a_mindir(
    ms: MagicMock,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    options: Any,
    names: tuple[str, ...],
    expected: str | None,
) -> None:
    operators(monkeypatch, *names)
    setup(context("net.mindir", {"mindspore": options}))
    assert environ.get(ISA) == expected


def test_a_checkpoint_says_nothing_about_its_operators(
    ms: MagicMock, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    operators(monkeypatch, "Conv2D")
    setup(context("net.ckpt"))
    assert ISA not in environ


def test_a_mindir_that_cannot_be_read_is_left_to_its_loader(
    ms: MagicMock, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    def broken(path: Path) -> MindIRSignature:
        raise MindIRError("broken")

    monkeypatch.setattr(runtime, "read_signature", broken)
    setup(context("net.mindir"))
    assert ISA not in environ


def test_what_the_operator_has_set_stays(ms: MagicMock, environ: dict[str, str]) -> None:
    environ |= {ISA: "SSE41", "GLOG_v": "1", "OMP_NUM_THREADS": "7"}
    setup(context(config={"mindspore": {"isa": "AVX2", "threads": 2}}))
    assert environ == {ISA: "SSE41", "GLOG_v": "1", "OMP_NUM_THREADS": "7"}


def test_an_instruction_set_that_comes_too_late_is_logged(ms: MagicMock, caplog: pytest.LogCaptureFixture) -> None:
    setup(context(config={"mindspore": {"isa": "AVX2"}}))
    assert "ONEDNN_MAX_CPU_ISA=AVX2 comes too late" in caplog.text


@pytest.mark.parametrize(("options", "used"), [({}, 5), ({"threads": 3}, 3)])
def test_a_handler_may_say_how_many_threads(
    ms: MagicMock, environ: dict[str, str], options: dict[str, int], used: int
) -> None:
    setup(context(config={"mindspore": options}), threads=5)
    assert environ["OMP_NUM_THREADS"] == str(used)
    ms.device_context.cpu.op_tuning.threads_num.assert_called_once_with(used)  # MindSpore refuses a second call


def test_threads_and_mode(ms: MagicMock, environ: dict[str, str]) -> None:
    setup(context(config={"mindspore": {"threads": 3, "mode": "graph"}}))
    assert environ["OMP_NUM_THREADS"] == "3"
    ms.device_context.cpu.op_tuning.threads_num.assert_called_once_with(3)
    ms.set_context.assert_called_once_with(mode=ms.GRAPH_MODE)


def kept(ms: MagicMock) -> Path:
    """Where MindSpore was told to keep its graphs."""
    (call,) = ms.set_context.call_args_list
    assert call.kwargs["enable_compile_cache"] is True
    return Path(call.kwargs["compile_cache_path"])


def test_compiled_graphs_are_kept_where_the_server_says(ms: MagicMock, tmp_path: Path) -> None:
    setup(context(config={"mindspore": {"compileCache": True}}, cache_dir=tmp_path / "cache"))
    assert kept(ms).is_relative_to(tmp_path / "cache" / "graphs")
    assert kept(ms).is_dir()


def test_compiled_graphs_are_kept_where_the_config_says(ms: MagicMock, tmp_path: Path) -> None:
    setup(context(config={"mindspore": {"compileCache": str(tmp_path / "mine")}}, cache_dir=tmp_path))
    assert kept(ms).is_relative_to(tmp_path / "mine")


@pytest.mark.parametrize(("key", "expected"), [("", False), ("sources", True)])
def test_graphs_of_a_handler_that_knows_what_they_depend_on_are_kept(
    ms: MagicMock, tmp_path: Path, key: str, expected: bool
) -> None:
    made = context(cache_dir=tmp_path)
    made.graphs_key = key
    setup(made)
    assert ms.set_context.called is expected


def test_graphs_that_depend_on_what_is_known_later_are_kept_apart(ms: MagicMock, tmp_path: Path) -> None:
    made = context(cache_dir=tmp_path)
    made.graphs_key = "sources"
    setup(made)
    before = kept(ms)
    ms.reset_mock()
    runtime.keep_graphs(made, "limits")
    assert kept(ms) != before
    assert kept(ms).is_relative_to(tmp_path)


def test_graphs_are_not_kept_where_the_config_forbids_it(ms: MagicMock, tmp_path: Path) -> None:
    made = context(config={"mindspore": {"compileCache": False}}, cache_dir=tmp_path)
    made.graphs_key = "sources"
    setup(made)
    assert not ms.set_context.called


def test_without_a_server_graphs_are_kept_in_the_users_cache(
    ms: MagicMock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    setup(context(config={"mindspore": {"compileCache": True}}))
    assert kept(ms).is_relative_to(tmp_path / "msx-serve" / "graphs")


def test_a_wrong_option_names_the_key(ms: MagicMock) -> None:
    with pytest.raises(ConfigError, match=r"mindspore\.threads: 0 is not an integer of 1 or more"):
        setup(context(config={"mindspore": {"threads": 0}}))


def run(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout


def test_importing_the_helpers_imports_nothing_heavy() -> None:
    assert run("import sys, msx_sdk.mindspore; print({'mindspore', 'numpy'} & sys.modules.keys())") == "set()\n"


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_mindspore_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> None:
    (tmp_path / "mindspore.py").write_text("import gc\n\nCOLLECTS = gc.isenabled()\n\nraise ImportError(COLLECTS)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mindspore", raising=False)
    try:
        if not enabled:
            gc.disable()
        with pytest.raises(ImportError, match="False"):
            setup(context())
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


@pytest.mark.mindspore
def test_the_real_mindspore_takes_every_option(tmp_path: Path) -> None:
    pytest.importorskip("mindspore")
    script = f"""
import os
from msx_sdk.context import Context, ModelInfo
from msx_sdk.mindspore import setup
options = {{"isa": "AVX2", "threads": 1, "mode": "graph", "compileCache": {str(tmp_path)!r}}}
target = setup(Context(ModelInfo("m", config={{"mindspore": options}}, device_id=0)))
import mindspore as ms
print(target, os.environ["ONEDNN_MAX_CPU_ISA"], ms.get_context("mode"), (ms.Tensor([1.0]) + 1).asnumpy())
"""
    assert run(script) == "CPU AVX2 0 [2.]\n"
