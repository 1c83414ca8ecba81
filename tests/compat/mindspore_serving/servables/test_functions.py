"""Methods of plain functions: what functions get, what becomes of what they return, and how instances fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_core.packed import OneBytes, OneText
from tests.compat.mindspore_serving.servables.calling import call, served

ONE = """
import numpy as np
def f(x):
    {body}
@register_method("y")
def m(x):
    y = add_stage(f, x, outputs_count=1{more})
    return y
"""
FAILED = "Call Function 'add.f' Failed, method: 'm', stage index(begin with 1): 1, error msg: "
CAUSE = "Push py task result cause exception: "


def one(folder: Path, body: str, values: list[Any], more: str = "", **config: Any) -> list[Any]:
    with served(folder, ONE.format(body=body, more=more), **config) as model:
        return call(model, "m", [{"x": value} for value in values])


SEEN = [
    (np.array([[1, 2]], np.float32), "float32 (1, 2) True"),
    (np.array(3, np.int8), "int8 () True"),
    (np.zeros((2, 0), np.float16), "float16 (2, 0) True"),
    (b"ab", "uint8 (2,) True"),
    (OneBytes(b"ab"), "uint8 (2,) True"),
    ("ä", "str ä"),
    (OneText("ä"), "str ä"),
]


def test_what_a_function_gets(tmp_path: Path) -> None:
    body = "return f'{x.dtype} {x.shape} {x.flags.writeable}' if hasattr(x, 'dtype') else f'{type(x).__name__} {x}'"
    answers = one(tmp_path, body, [value for value, _ in SEEN])
    assert answers == [{"y": text} for _, text in SEEN]


RETURNED: list[tuple[str, Any]] = [
    ("b'ab'", b"ab"),
    ("np.bytes_(b'ab')", b"ab"),
    ("'ab'", "ab"),
    ("np.str_('ab')", "ab"),
    ("True", np.array(True)),
    ("2", np.array(2, np.int64)),
    ("2.5", np.array(2.5)),
    ("np.float16(1)", np.array(1, np.float16)),
    ("np.bool_(True)", np.array(True)),
    ("np.arange(6).reshape(2, 3)[:, ::2]", np.array([[0, 2], [3, 5]])),
    ("np.asfortranarray(np.ones((2, 2)))", np.ones((2, 2))),
    ("np.array([1, 256], '>u2')", np.array([1, 256], np.uint16)),
    ("type('Tensor', (), {'asnumpy': lambda self: np.int8([1])})()", np.array([1], np.int8)),
    ("bytearray(b'ab')", np.array([97, 98], np.uint8)),
    ("memoryview(b'ab')", np.array([97, 98], np.uint8)),
    ("([1, 2],)", np.array([1, 2])),
    ("([1.5],)", np.array([1.5])),
]
ILLEGAL = [
    ("None", f"{CAUSE}Get illegal result data with type <class 'NoneType'>"),
    ("{}", f"{CAUSE}Get illegal result data with type <class 'dict'>"),
    ("1j", f"{CAUSE}Get illegal result data with type <class 'complex'>"),
    ("(['a'],)", f"{CAUSE}Get illegal result data with type <class 'list'>"),
    ("([[1], [1, 2]],)", f"{CAUSE}Get illegal result data with type <class 'list'>"),
    ("np.array(['a'])", f"{CAUSE}Get illegal result data with type <class 'numpy.ndarray'>"),
    ("np.longdouble(1)", f"{CAUSE}Get illegal result data with type <class 'numpy.longdouble'>"),
    ("2**63", f"{CAUSE}Unable to cast Python instance of type <class 'int'> to C++ type 'long'"),
    ("2**70", f"{CAUSE}Unable to cast Python instance of type <class 'int'> to C++ type 'long'"),
    (
        "[1, 2]",
        "The outputs number 2 of one instance returned by function 'add.f' is not equal to the outputs number 1  "
        "registered in method m",
    ),
]


def test_what_a_function_may_return(tmp_path: Path) -> None:
    cases = ", ".join(f"lambda: {code}" for code, _ in RETURNED)
    answers = one(tmp_path, f"return [{cases}][int(x)]()", [np.array(at) for at in range(len(RETURNED))])
    for (code, wanted), answer in zip(RETURNED, answers, strict=True):
        if isinstance(wanted, np.ndarray):
            assert answer["y"].dtype == wanted.dtype, code
            np.testing.assert_array_equal(answer["y"], wanted, strict=True)
        else:
            assert answer == {"y": wanted}


def test_what_a_function_may_not_return(tmp_path: Path) -> None:
    cases = ", ".join(f"lambda: {code}" for code, _ in ILLEGAL)
    answers = one(tmp_path, f"return [{cases}][int(x)]()", [np.array(at) for at in range(len(ILLEGAL))])
    assert answers == [("3", FAILED + text) for _, text in ILLEGAL]


@pytest.mark.parametrize("processes", [0, 2])
def test_an_instance_that_fails_fails_alone(tmp_path: Path, processes: int) -> None:
    answers = one(tmp_path, "return 6 // x", [np.array(n) for n in (1, 2, 3)], functionProcesses=processes)
    assert [answer["y"].item() for answer in answers] == [6, 3, 2]
    body = "\n    if x < 0:\n        raise ValueError('below zero')\n    return x"
    answers = one(tmp_path, body, [np.array(n) for n in (1, -1, 2)], functionProcesses=processes)
    assert answers[1] == ("3", f"{FAILED}below zero")
    assert (answers[0]["y"].item(), answers[2]["y"].item()) == (1, 2)


def batch(folder: Path, body: str, values: list[int], **config: Any) -> list[Any]:
    answers = one(folder, body, [np.array(value) for value in values], ", batch_size=4, tag='Half'", **config)
    return [answer["y"].item() if isinstance(answer, dict) else answer for answer in answers]


HALF = "Call Half Failed, method: 'm', stage index(begin with 1): 1, error msg: "


@pytest.mark.parametrize(
    "body",
    [
        "return [int(one[0]) * 10 + len(x) for one in x]",
        "return tuple((int(one[0]) * 10 + len(x),) for one in x)",
        "return (int(one[0]) * 10 + len(x) for one in x)",
        "\n    for one in x:\n        yield int(one[0]) * 10 + len(x)\n    yield 'one more'",
    ],
)
def test_a_function_of_a_batch(tmp_path: Path, body: str) -> None:
    assert batch(tmp_path, body, [1, 2, 3, 4, 5]) == [14, 24, 34, 44, 51]


def test_a_batch_is_a_tuple_of_tuples(tmp_path: Path) -> None:
    assert batch(tmp_path, "return [isinstance(x, tuple) and isinstance(x[0], tuple)]", [1]) == [True]


def test_failures_of_a_batch(tmp_path: Path) -> None:
    assert batch(tmp_path, "raise KeyError('k')", [1, 2]) == [("3", f"{HALF}'k'")] * 2
    few = (
        "The number 1 of instances returned by function 'add.f' is not equal to the number 2 of instances provided to "
        "this function."
    )
    assert batch(tmp_path, "return [1]", [1, 2]) == [("3", HALF + few)] * 2
    assert batch(tmp_path, "yield 1", [1, 2]) == [("3", HALF + few)] * 2
    assert batch(tmp_path, "return 1", [1]) == [("3", f"{HALF}'int' object is not iterable")]
    body = "\n    for one in x:\n        if one[0] == 2: raise ValueError('two')\n        yield len(x)"
    assert batch(tmp_path, body, [1, 2, 3, 4]) == [4, ("3", f"{HALF}two"), 2, 2]


TWO_STAGES = """
def before(x):
    x += 1
    return x
def after(x, y):
    if y > 5:
        raise ValueError("too large")
    return x, "sum"
@register_method(["y", "kind", "x"])
def m(x):
    "Adds one."
    y = add_stage(before, x, outputs_count=1)
    y, kind = add_stage(after, x, y, outputs_count=2)
    return y, kind, x

@register_method("x")
def same(x):
    return x
"""


def test_stages_in_order(tmp_path: Path) -> None:
    with served(tmp_path, TWO_STAGES) as model:
        good, bad = call(model, "m", [{"x": np.array([1])}, {"x": np.array([5])}])
        assert (good["y"].tolist(), good["kind"], good["x"].tolist()) == ([1], "sum", [1]), "no stage changes another's"
        assert bad == (
            "3",
            "Call Function 'add.after' Failed, method: 'm', stage index(begin with 1): 2, error msg: too large",
        )
        assert call(model, "same", [{"x": OneText("a"), "more": 1}]) == [{"x": "a"}]
        assert call(model, "same", [{"y": 1}]) == [
            ("2", "Cannot find input x in instance input , servable add, method same")
        ]
        handler = model.handler.owner
        assert [(one.name, one.inputs, one.outputs, one.summary) for one in handler.offered_methods()] == [
            ("m", ("x",), ("y", "kind", "x"), "Adds one."),
            ("same", ("x",), ("x",), ""),
        ]


def test_what_a_function_keeps_is_its_own(tmp_path: Path) -> None:
    source = """
import numpy as np
KEPT = np.zeros(2)
def give(x):
    return KEPT, KEPT
def change(kept):
    kept += 1
    return kept
@register_method(["y", "kept"])
def m(x):
    y, kept = add_stage(give, x, outputs_count=2)
    y = add_stage(change, y, outputs_count=1)
    return y, kept
"""
    with served(tmp_path, source) as model:
        for _ in range(2):
            (answer,) = call(model, "m", [{"x": 1}])
            assert (answer["y"].tolist(), answer["kept"].tolist()) == ([1, 1], [0, 0])


def test_what_a_servable_says_of_itself(tmp_path: Path) -> None:
    with served(tmp_path, TWO_STAGES) as model:
        (reply,) = model.predict([b""], {"describe": "True"})
        assert reply.json() == {
            "methods": [
                {"name": "m", "inputs": ["x"], "outputs": ["y", "kind", "x"]},
                {"name": "same", "inputs": ["x"], "outputs": ["x"]},
            ]
        }
        assert model.predict([b""], {"explain": "True"})[0].status == 501


def test_the_other_ranks_follow_whatever_comes_of_a_call(tmp_path: Path) -> None:
    """They wait for rank 0 to say that its batch is done."""
    led: list[str] = []

    class Distributed:
        @contextmanager
        def leading(self) -> Iterator[None]:
            yield
            led.append("done")

    with served(tmp_path, TWO_STAGES) as model:
        model.handler.owner._distributed = Distributed()
        assert model.predict([b"x"])[0].status == 400
        assert call(model, "same", [{"y": 1}])[0][0] == "2"
    assert led == ["done", "done"]


def test_a_plain_prediction_asks_for_the_only_method(tmp_path: Path) -> None:
    with served(tmp_path, ONE.format(body="return x + x", more="")) as model:
        reply = model.predict([{"x": [[1, 2]]}], {"content-type": "application/json"})[0]
        assert reply.json() == {"y": [[2, 4]]}
        reply = model.predict([{"x": [[1], [2, 3]]}], {"content-type": "application/json"})[0]
        assert (reply.status, reply.failure and reply.failure.message) == (
            400,
            "input 'x': the nested lists do not have a rectangular shape",
        )
    with served(tmp_path, TWO_STAGES) as model:
        reply = model.predict([b"x"])[0]
        assert (reply.status, reply.failure and reply.failure.message) == (
            400,
            "the servable has the methods m, same: name one in the URL",
        )


def test_the_native_function(tmp_path: Path) -> None:
    source = "@register_method('y')\ndef m(x):\n    return add_stage('argmax_cpp', x, outputs_count=1)\n"
    with served(tmp_path, source) as model:
        good, *bad = call(
            model, "m", [{"x": value} for value in (np.array([[1, 7], [3, 2]], np.float32), np.array([True]), "a")]
        )
    np.testing.assert_array_equal(good["y"], np.array(1, np.int64), strict=True)
    failed = "Call Function 'argmax_cpp' Failed, method: 'm', stage index(begin with 1): 1, error msg: "
    assert bad == [("3", f"{failed}Argmax not support data type kMSI_{name}") for name in ("Bool", "String")]
