from __future__ import annotations

from types import SimpleNamespace

import mindspore as ms
import numpy as np
import pytest

from tests.emulated_ascend import inputs
from tests.emulated_ascend.calls import HEADS
from tests.emulated_ascend.matmul import MatMul
from tests.emulated_ascend.refused import Refused
from tests.emulated_ascend.registry import Change, emulated

pytestmark = pytest.mark.mindspore


def test_each_call_is_written_down() -> None:
    with emulated() as operators:
        operators.PagedAttention(**HEADS)(**inputs.decode())
        operators.MatMul(transpose_b=True)(**inputs.product())
    operators.MatMul(transpose_b=True)(**inputs.product())  # no longer
    assert len(operators.calls) == 2
    assert operators.of("MatMul") == [
        "MatMul(transpose_a=False, transpose_b=True, input=Float16 [3, 64], mat2=Float16 [32, 64])"
    ]


def test_one_argument_of_one_call_is_changed_before_it_is_checked() -> None:
    change = Change("PagedAttention", "context_lens", lambda lengths: inputs.ints(17, 0, 32), nth=1)
    with emulated(mutate=change) as operators:
        attention = operators.PagedAttention(**HEADS)
        attention(**inputs.decode())
        assert not change.done
        with pytest.raises(Refused, match="context_lens"):
            attention(**inputs.decode())
        assert change.done
        attention(**inputs.decode())


def test_an_attribute_of_one_call_is_changed() -> None:
    with emulated(mutate=Change("PagedAttention", "scale_value", lambda scale: scale / 2)) as operators:
        attention = operators.PagedAttention(**HEADS)
        changed, own = attention(**inputs.decode()), attention(**inputs.decode())
    assert not np.allclose(changed.asnumpy(), own.asnumpy())


def test_names_of_a_module_stand_for_the_emulation_until_it_ends() -> None:
    module = SimpleNamespace(MatMul="MindSpore's", Reshape="MindSpore's")
    with emulated(module):
        during = vars(module).copy()
    assert during == {"MatMul": MatMul, "Reshape": "MindSpore's"}
    assert module.MatMul == "MindSpore's"


def test_an_operator_that_is_not_emulated_is_named() -> None:
    with emulated() as operators, pytest.raises(AttributeError, match="Conv2D is not emulated"):
        operators.Conv2D()


def test_310p_does_not_know_bfloat16() -> None:
    with emulated(chip="310P") as operators, pytest.raises(Refused, match="310P does not know bfloat16"):
        operators.MatMul(transpose_b=True)(**inputs.product(ms.bfloat16))
    MatMul(transpose_b=True)(**inputs.product(ms.bfloat16))
