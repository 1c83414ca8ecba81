from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import msx_torchserve
from msx_sdk import HandlerLoadError
from msx_sdk.testing import LocalModel
from msx_torchserve.packages.ts.handler_utils.distributed import pt_pippy
from msx_torchserve.packages.ts.torch_handler.base_handler import BaseHandler
from msx_torchserve.packages.ts.torch_handler.dali_image_classifier import DALIImageClassifier
from msx_torchserve.packages.ts.torch_handler.distributed.base_deepspeed_handler import BaseDeepSpeedHandler
from msx_torchserve.packages.ts.torch_handler.distributed.base_pippy_handler import BasePippyHandler
from msx_torchserve.packages.ts.torch_handler.trt_llm_handler import TRTLLMHandler

PROGRAM = """
import sys
import msx_torchserve
msx_torchserve.TorchServePackage().offer()
msx_torchserve.TorchServePackage().offer()
import ts
print(ts.__file__)
print(sys.path[-1])
print([name for name in ("torch", "numpy", "PIL", "transformers", "mindspore") if name in sys.modules])
import ts.torch_handler.image_classifier, ts.torch_handler.text_classifier, ts.torch_handler.object_detector
print([name for name in ("torch", "numpy", "PIL", "transformers", "mindspore") if name in sys.modules])
"""


def run(program: str, *folders: str) -> list[str]:
    code = f"import sys\nsys.path[:0] = {folders!r}\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split("\n")


def test_offered_once_last_and_without_heavy_imports() -> None:
    file, last, early, late = run(PROGRAM)[:4]
    folder = Path(msx_torchserve.__file__).parent / "packages"
    assert Path(file) == folder / "ts" / "__init__.py"
    assert Path(last) == folder
    assert early == late == "[]"


tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")  # pytest brings it

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
PACKAGES = [path for path in PROJECT["targets"]["wheel"]["only-include"] if Path(path).name.startswith("msx_")]
PTH = "msx_compat.pth"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Site-packages as pip makes them of the wheel: its packages side by side, and the file that adds to the path."""
    for package in PACKAGES:
        (tmp_path / Path(package).name).symlink_to(ROOT / package)
    [(source, target)] = PROJECT["targets"]["wheel"]["force-include"].items()
    (tmp_path / target).write_text((ROOT / source).read_text())
    assert target == PTH
    return tmp_path


def imported(site: Path, names: str) -> list[str]:
    """Where they come from; the checkout itself is not on the path."""
    code = (
        "import site, sys\n"
        f"sys.path[:] = [path for path in sys.path if not path.startswith({str(ROOT)!r}) or 'site-packages' in path]\n"
        f"site.addsitedir({str(site)!r})\n"
        f"import {names}\n"
        f"for module in ({names},): print(module.__file__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_outside_workers(site: Path) -> None:
    """From scripts, notebooks and unit tests of handlers, where TorchServe's packages are not installed."""
    expected = [site / "msx_torchserve" / "packages" / "ts", site / "msx_torchserve" / "packages" / "model_archiver"]
    assert imported(site, "ts, model_archiver") == [str(folder / "__init__.py") for folder in expected]


def test_installed_packages_of_these_names_win(site: Path) -> None:
    for name in ("ts", "model_archiver"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("")
    expected = [str(site / name / "__init__.py") for name in ("ts", "model_archiver")]
    assert imported(site, "ts, model_archiver") == expected


def test_a_checkout_has_the_same_on_its_path() -> None:
    folders = {Path(package).name: package for package in PACKAGES}
    lines = (ROOT / "compat" / PTH).read_text().split()
    assert lines
    for line in lines:
        package, _, rest = line.partition("/")
        assert f"{folders[package]}/{rest}" in PROJECT["dev-mode-dirs"]


def test_another_ts_wins(tmp_path: Path) -> None:
    (tmp_path / "ts.py").write_text("mine = True")
    program = "import msx_torchserve\nmsx_torchserve.TorchServePackage().offer()\nimport ts\nprint(ts.mine)"
    assert run(program, str(tmp_path))[0] == "True"


@pytest.mark.parametrize(
    ("handler", "serialized", "expected"),
    [
        ("image_classifier", "model.pt", "ts.torch_handler.image_classifier"),
        ("image_classifier", "model.onnx", "ts.torch_handler.image_classifier"),
        ("image_classifier", "model.mindir", "image_classifier"),
        ("image_classifier", None, "image_classifier"),
        ("object_detector", "model.pt", "object_detector"),
        ("h.py:f", "model.pt", "h.py:f"),
    ],
)
def test_a_default_handler_by_the_model_it_is_for(handler: str, serialized: str | None, expected: str) -> None:
    assert (
        msx_torchserve.TorchServePackage().handler_for(handler, {"model": {"serializedFile": serialized}}) == expected
    )


def test_torchserves_own_insides_are_not_there() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("msx_torchserve.packages.ts.model_service")
    assert not hasattr(importlib.import_module("msx_torchserve.packages.ts.service"), "Service")


def test_torch_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    message = (
        r"this handler needs torch, which is not installed where the workers run: pip install 'msx-serve\[torch\]'"
    )
    with pytest.raises(HandlerLoadError, match=message), LocalModel(BaseHandler, tmp_path):
        pass


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (BasePippyHandler, "PiPPy, is not served here: derive the handler from msx_sdk.mindspore.PipelineHandler"),
        (BaseDeepSpeedHandler, "DeepSpeed, is not served here: derive the handler from msx_sdk.mindspore.Pipeline"),
        (TRTLLMHandler, "TensorRT-LLM, is not served here: pack the model with --handler text_generation"),
        (DALIImageClassifier, "DALI, is not served here: NVIDIA's DALI needs its GPUs"),
    ],
)
def test_what_is_different_here_names_what_to_use(handler: type, words: str) -> None:
    with pytest.raises(HandlerLoadError, match=words):
        handler()


@pytest.mark.parametrize("name", ["get_pipeline_driver", "get_pipline_driver"])
def test_both_spellings_of_the_pipeline_driver(name: str) -> None:
    """The second one is that of TorchServe's page on large models."""
    with pytest.raises(HandlerLoadError, match=r"PiPPy \(get_pipeline_driver\) is not served here: .*PipelineHandler"):
        getattr(pt_pippy, name)(None, 1, None)
