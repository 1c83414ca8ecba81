"""register_method and add_stage: the graph that they make, and their texts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from msx_core.servables import Model
from msx_mindspore_serving.packages.mindspore_serving.server import register
from tests.compat.mindspore_serving.packages.servables import ADD, declared, refused

FAILED = (
    "Check failed in method 'm', the parameter 'stage' of add_stage must be function or Model returned by declare_model"
)
NOT_A_PLACEHOLDER = "is a placeholder for data and must come from the method inputs or the outputs of add_stage"


def test_a_method_is_a_graph(tmp_path: Path) -> None:
    source = """
    model = declare_model("a.mindir", "MindIR")

    def decode(image):
        return image

    def best(instances):
        return instances

    @register_method(["label", "score"])
    def classify(image, size):
        "Says what an image shows."
        array = add_stage(decode, image, outputs_count=1)
        logits, features = add_stage(model, array, size, outputs_count=2)
        label = add_stage(best, logits, features, outputs_count=1, batch_size=8, tag="Best")
        index = add_stage("argmax_cpp", logits, outputs_count=1)
        return label, index
    """
    method = declared(tmp_path, source, "net").methods["classify"]
    assert (method.inputs, method.outputs) == (("image", "size"), ("label", "score"))
    assert method.summary == "Says what an image shows."
    decode, model, best, index = method.stages
    assert (decode.name, decode.tag, decode.batch_size, decode.inputs) == (
        "net.decode",
        "Function 'net.decode'",
        None,
        ((0, 0),),
    )
    assert (model.name, model.inputs, model.outputs_count) == ("a.mindir", ((1, 0), (0, 1)), 2)
    assert (best.tag, best.batch_size, best.inputs) == ("Best", 8, ((2, 0), (2, 1)))
    assert (index.native, method.results) == ("argmax_cpp", ((3, 0), (4, 0)))
    assert method.batch_size(best, [2]) == 8
    assert [method.batch_size(stage, [2, 4]) for stage in (decode, index)] == [2, 4]


def test_a_method_may_return_its_inputs(tmp_path: Path) -> None:
    method = declared(tmp_path, "@register_method('y')\ndef same(x):\n    return x\n").methods["same"]
    assert (method.stages, method.results) == ((), ((0, 0),))


def test_a_servable_imports_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "add").mkdir()
    (tmp_path / "add" / "beside_it.py").write_text("def add(x, y):\n    return x + y\n")
    for line in ("from beside_it import add", "from .beside_it import add", "from add.beside_it import add"):
        assert "sum_of" in declared(tmp_path, ADD.replace("def add(x, y):\n    return x + y", line)).methods


def test_a_servable_may_have_the_name_of_a_module(tmp_path: Path) -> None:
    assert "sum_of" in declared(tmp_path, ADD, "json").methods
    assert "sum_of" in declared(tmp_path, ADD, "msgspec").methods
    assert "antigravity" not in sys.modules
    assert "sum_of" in declared(tmp_path, ADD, "antigravity").methods, "which is not imported yet"
    assert "antigravity" not in sys.modules
    assert "sum_of" in declared(tmp_path, ADD, "uvloop").methods
    assert not hasattr(sys.modules.get("uvloop"), "servable_config")
    assert "sum_of" in declared(tmp_path, ADD, "add.v2-x").methods


def test_outside_of_a_servable() -> None:
    with pytest.raises(RuntimeError, match=r"^Failed to obtain the directory of servable_config\.py$"):
        register.declare_model("a", "MindIR")


def stage(call: str, before: str = "", method: str = "m") -> str:
    return f"""
model = declare_model("a.mindir", "MindIR")
def one(x):
    return x
def two(x, y):
    return x
{before}
@register_method("y")
def {method}(x):
    {call}
    return y
"""


TWICE = "@register_method('y')\ndef n(x):\n    return {}\n"
REFUSALS = {
    "": "Servable 'add' has not been registered",
    "model = declare_model('a', 'MindIR')": "Raise failed: There is no method registered for servable",
    "1 / 0": "division by zero",
    "register_method([])(lambda x: x)": "Method return output size 1 not match registered 0",
    "register_method('')": "The item of parameter 'output_names' should not be empty str",
    "@register_method('y')\ndef m(*x):\n    pass": "'m' input x cannot be VAR_POSITIONAL !",
    "@register_method('y')\ndef m(**x):\n    pass": "'m' input x cannot be VAR_KEYWORD !",
    "@register_method('y')\ndef m(*, x):\n    pass": "'m' input x cannot be KEYWORD_ONLY !",
    "@register_method(['y', 'z'])\ndef m(x):\n    return x": "Method return output size 1 not match registered 2",
    "@register_method('y')\ndef m(x):\n    return [1]": f"Each value returned {NOT_A_PLACEHOLDER}",
    "@register_method('y')\ndef m(x):\n    return 1": "object of type 'int' has no len()",
    "@register_method('y')\ndef m(x):\n    return x\nregister_method('y')(m)": (
        "Raise failed: Method m has been registered more than once."
    ),
    stage("y, z = add_stage(one, x, outputs_count=1)"): "cannot unpack non-iterable _TensorDef object",
    stage("y, z = add_stage(one, x, outputs_count=3)"): "too many values to unpack (expected 2)",
    stage("y = add_stage(one, 1, outputs_count=1)"): f"Each value of parameter *args {NOT_A_PLACEHOLDER}",
    stage("y = add_stage(one, x)"): "add_stage() missing 1 required keyword-only argument: 'outputs_count'",
    stage("y = add_stage(one, x, outputs_count=1, tag='')"): "Parameter 'tag' should not be empty str",
    stage("y = add_stage(one, x, outputs_count=1, batch_size=-1)"): "Parameter 'batch_size' should be >= 0",
    stage("y = add_stage(two, x, outputs_count=1)"): (
        "function two input args count 2 not match the count 1 registered in method"
    ),
    stage("y = add_stage(len, x, outputs_count=1)"): f"{FAILED}, now is <class 'builtin_function_or_method'>",
    stage("y = add_stage(Model('b'), x, outputs_count=1)"): (
        f"{FAILED}, and ensure that interface 'declare_model' can take effect when importing servable_config.py by the "
        "serving server"
    ),
    stage("y = add_stage('argmin_cpp', x, outputs_count=1)"): "Function 'argmin_cpp' is not defined",
    stage("y = add_stage(model, x, x, outputs_count=1); y = add_stage(model, x, outputs_count=1)"): (
        "Raise failed: RegisterInputOutputInfo failed, inputs count 1 not match old count 2, model: a.mindir"
    ),
    stage("y = add_stage(model, x, outputs_count=1); y, z = add_stage(model, x, outputs_count=2)"): (
        "Raise failed: RegisterInputOutputInfo failed, outputs count 2 not match old count 1, model: a.mindir"
    ),
    stage("y = add_stage(one, x, outputs_count=1); y = add_stage(one, x, outputs_count=2)"): (
        "Stage function 'add.one' outputs count 2 not match last registered count 1, method name 'm'"
    ),
    stage("y = add_stage(one, x, outputs_count=1); y = add_stage(one, x, x, outputs_count=1, batch_size=1)"): (
        "Stage function 'add.one' inputs count 2 not match last registered count 1, method name 'm'"
    ),
    stage("y = add_stage(one, x, outputs_count=1); y = add_stage(one, x, outputs_count=1, batch_size=1)"): (
        "Failed to add stage function add.one: parameter 'batch_size' in multiple 'add_stage' should be enabled or "
        "disabled consistently"
    ),
}


@pytest.mark.parametrize("source", REFUSALS)
def test_what_is_refused(tmp_path: Path, source: str) -> None:
    assert refused(tmp_path, source) == REFUSALS[source]


CALLS = [
    ((), 0, "Model(a).call() failed: no inputs provided, the inputs can be call(x1, x2) for single instance "
     "or call([[x1, x2], [x1, x2]]) for multi instances."),
    (([1],), 0, "Model(a).call() failed: inputs format invalid, the inputs can be call(x1, x2) for single "
     "instance or  call([[x1, x2], [x1, x2]]) for multi instances."),
    ((), 1, "Model(a ,subgraph=1).call() failed: no inputs provided, the inputs can be call(x1, x2) for single "
     "instance or call([[x1, x2], [x1, x2]]) for multi instances."),
    ((1,), 0, "Model(a).call() failed: Run worker for inference failed, worker has not been started"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "subgraph", "text"), CALLS)
def test_a_model_is_called_wrongly(tmp_path: Path, args: tuple[object, ...], subgraph: int, text: str) -> None:
    model = declared(tmp_path, "declare_model('a', 'MindIR')\n@register_method('y')\ndef m(x):\n    return x\n").models[
        "a"
    ]
    with pytest.raises(RuntimeError) as caught:
        model.call(*args, subgraph=subgraph)
    assert str(caught.value) == text


def test_calls_of_a_model(tmp_path: Path) -> None:
    model = declared(tmp_path, "declare_model('a', 'MindIR')\n@register_method('y')\ndef m(x):\n    return x\n").models[
        "a"
    ]
    model.caller = lambda declaration, subgraph, instances: tuple(tuple(instance) for instance in instances)
    assert model.call(1) == 1
    assert model.call(1, 2) == (1, 2)
    assert model.call([[1, 2], [3, 4]]) == ((1, 2), (3, 4))
    with pytest.raises(RuntimeError, match=r"^Model\(a\)\.call\(\) failed: Input instances count is 0$"):
        model.call([])
    with pytest.raises(RuntimeError) as caught:
        model.call(1, subgraph=1)
    assert str(caught.value) == (
        "Model(a, subgraph=1).call() failed: The model does not have subgraph of index 1, the subgraph count of the "
        "model is 1"
    )
    with pytest.raises(RuntimeError, match="Parameter 'subgraph' should be >= 0"):
        model.call(1, subgraph=-1)


def test_a_model_that_was_not_declared() -> None:
    with pytest.raises(RuntimeError) as caught:
        Model("b").call(1)
    assert str(caught.value) == (
        "Model(b).call() failed: the model is not declared, ensure that interface 'declare_model' can take effect when "
        "importing servable_config.py by the serving server"
    )
