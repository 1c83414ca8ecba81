"""A network from Python source with its weights from a checkpoint."""

from pathlib import Path
from typing import Any

import pytest

from msx_sdk.errors import HandlerLoadError
from tests.backend.handlers.conftest import Serve

ms = pytest.importorskip("mindspore")
pytestmark = pytest.mark.mindspore

AFFINE: dict[str, Any] = {"model": {"class": "Affine"}}
WRONG_INPUT = {"name": "x", "shape": [3], "datatype": "F"}


def load_error(serve: Serve, serialized: str, config: Any = AFFINE, **more: Any) -> str:
    with pytest.raises(HandlerLoadError) as raised:
        serve("checkpoint", serialized, config, **{"modelFile": "net.py", **more})
    return str(raised.value)


def one_file(folder: Path, source: str, nets: Path) -> Path:
    (folder / "own.py").write_text(source)
    (folder / "affine.ckpt").symlink_to(nets / "affine.ckpt")
    return folder


@pytest.mark.parametrize("serialized", ["affine.ckpt", "affine.safetensors"])
@pytest.mark.parametrize("mode", ["pynative", "graph"])
def test_predicts_with_the_stored_weights(serve: Serve, serialized: str, mode: str) -> None:
    inputs = [{"name": "x", "shape": [-1, 3]}]
    config = {"model": {"class": "Affine", "inputs": inputs}, "mindspore": {"mode": mode}}
    model = serve("checkpoint", serialized, config, modelFile="net.py")
    replies = model.predict([[[1, 2, 3]], {"x": [[0, 0, 0], [1, 1, 1]]}])
    assert [reply.json() for reply in replies] == [
        {"output_0": [[7, 4, 6]], "output_1": [6]},
        {"output_0": [[5, 0, 0], [7, 2, 2]], "output_1": [0, 3]},
    ]


def test_undeclared_inputs_bear_the_names_of_construct(serve: Serve) -> None:
    model = serve("checkpoint", "affine.ckpt", AFFINE, modelFile="net.py")
    assert model.handler.owner.describe()["inputs"] == [{"name": "x", "datatype": "FP32", "shape": None}]
    good, bad = model.predict([{"x": [[1, 2, 3]]}, {"y": 1}])
    assert good.json()["output_1"] == [6]
    assert bad.failure is not None
    assert bad.failure.message == "missing input 'x' and unknown input 'y'; this model takes x (float32)"


def test_arguments_reach_the_class(serve: Serve, tmp_path: Path, nets: Path) -> None:
    source = "from net import Affine\n\n\ndef create(bias):\n    assert bias == 3.5\n    return Affine(bias)\n"
    folder = one_file(tmp_path, source, nets)
    config = {"model": {"args": {"bias": 3.5}}}
    model = serve("checkpoint", "affine.ckpt", config, folder, modelFile="own.py")
    assert model.predict([[[0, 0, 0]]])[0].json()["output_0"] == [[5, 0, 0]]
    with pytest.raises(HandlerLoadError, match="missing a required argument: 'bias'; give its arguments as"):
        serve("checkpoint", "affine.ckpt", {}, folder, modelFile="own.py")


def test_the_network_is_switched_from_training_to_inference(serve: Serve, tmp_path: Path, nets: Path) -> None:
    source = (
        "import mindspore as ms\nfrom mindspore import nn\n\n\nclass Forgetful(nn.Cell):\n    def __init__(self):\n"
        '        super().__init__()\n        self.bias = ms.Parameter(ms.Tensor([0.0, 0.0, 0.0]), name="bias")\n'
        "        self.drop = nn.Dropout(p=0.9)\n        self.set_train(True)\n\n"
        "    def construct(self, x):\n        return self.drop(x)\n"
    )
    folder = one_file(tmp_path, source, nets)
    model = serve("checkpoint", "affine.ckpt", {}, folder, modelFile="own.py")
    assert model.predict([[[1, 2, 3]] * 9])[0].json() == [[1, 2, 3]] * 9


def test_parameters_that_do_not_fit_are_named(serve: Serve, tmp_path: Path, nets: Path) -> None:
    assert load_error(serve, "affine.ckpt", {"model": {"class": "Single"}}) == (
        "affine.ckpt does not fit the network Single: not in the network: bias"
    )
    source = (
        "import mindspore as ms\n\n\nclass Other(ms.nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
        '        self.bias = ms.Parameter(ms.Tensor([1.0]), name="bias")\n'
        '        self.scale = ms.Parameter(ms.Tensor([1.0]), name="scale")\n'
    )
    folder = one_file(tmp_path, source, nets)
    message = load_error(serve, "affine.ckpt", {}, folder=folder, modelFile="own.py")
    assert message == (
        "affine.ckpt does not fit the network Other: missing in the file: scale; "
        "of another shape: bias (file (3,), network (1,))"
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "expected a function create() or one nn.Cell class, found Affine, Single, Pair, Mean"),
        ({"model": {"class": "Nothing"}}, "net.py has no class or function 'Nothing'"),
        ({"model": {"class": "Affine", "args": {"weight": 1}}}, "unexpected keyword argument 'weight'"),
        ({"model": {"klass": "Affine"}}, "model-config.yaml, model: object contains unknown field `klass`"),
        ({"model": {"class": 3}}, "model-config.yaml, model.class: expected `str | null`, got `int`"),
        ({"model": {"class": "Affine", "inputs": [WRONG_INPUT]}}, "datatype 'F' is not one of BOOL"),
    ],
)  # fmt: skip
def test_a_wrong_config_names_the_key(serve: Serve, config: Any, message: str) -> None:
    assert message in load_error(serve, "affine.ckpt", config)


def test_the_archive_must_have_both_files(serve: Serve) -> None:
    assert "pack it with --model-file" in load_error(serve, "affine.ckpt", modelFile="")
    assert "expected a checkpoint that ends with .ckpt or .safetensors" in load_error(serve, "net.py")


def test_a_file_that_is_not_a_checkpoint_is_named(serve: Serve, tmp_path: Path, nets: Path) -> None:
    (tmp_path / "broken.ckpt").write_bytes(b"\x00nothing")
    (tmp_path / "net.py").symlink_to(nets / "net.py")
    assert "broken.ckpt is not a MindSpore checkpoint" in load_error(serve, "broken.ckpt", folder=tmp_path)


TOGETHER = """
from mindspore import nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.reduce = ops.AllReduce()

    def construct(self, x):
        return self.reduce(x)
"""

LAYERS = """
from mindspore import nn
from msx_sdk.mindspore.layers import ColumnParallelLinear

class Net(nn.Cell):
    def __init__(self, parallel, width):
        super().__init__()
        self.up = ColumnParallelLinear(2, width, parallel, bias=False, gather=True)

    def construct(self, x):
        return self.up(x)
"""


def test_a_network_of_several_ranks_on_one(serve: Serve, nets: Path, tmp_path: Path) -> None:
    folder = one_file(tmp_path, TOGETHER, nets)
    message = load_error(serve, "affine.ckpt", {}, folder=folder, modelFile="own.py")
    assert message.startswith("own.py computes together with other ranks (AllReduce in the group 'hccl_world_group')")


def test_a_network_that_asks_for_its_place(serve: Serve, nets: Path, tmp_path: Path) -> None:
    """Its layers read their part of the file; of one rank that is all."""
    import numpy as np
    from safetensors.numpy import save_file

    folder = one_file(tmp_path, LAYERS, nets)
    save_file({"up.weight": np.array([[1, 0], [0, 1], [2, 2]], np.float32)}, folder / "w.safetensors")
    config = {"model": {"args": {"width": 3}}}
    model = serve("checkpoint", "w.safetensors", config, folder, modelFile="own.py")
    (reply,) = model.predict([[[1, 2]]])
    assert reply.json() == [[1, 2, 6]]
    message = load_error(serve, "affine.ckpt", config, folder=folder, modelFile="own.py")
    assert message == "affine.ckpt: a network of parallel layers reads its part of a .safetensors file"


def test_a_network_of_integers_says_what_to_declare(serve: Serve, tmp_path: Path) -> None:
    source = "from mindspore import nn\n\n\ndef create():\n    return nn.Embedding(5, 2)\n"
    (tmp_path / "words.py").write_text(source)
    ms.save_checkpoint(ms.nn.Embedding(5, 2), str(tmp_path / "words.ckpt"))
    files = {"modelFile": "words.py"}
    (reply,) = serve("checkpoint", "words.ckpt", {}, tmp_path, **files).predict([[[1, 2]]])
    assert reply.failure is not None
    assert (
        "words.py does not take float32, the type of inputs that are not declared, for ids: give `model: {inputs: ["
        in (reply.failure.message)
    )
    config = {"model": {"inputs": [{"name": "ids", "shape": [-1, 2], "datatype": "INT32"}]}}
    (reply,) = serve("checkpoint", "words.ckpt", config, tmp_path, **files).predict([[[1, 2]]])
    assert reply.status == 200
