"""The delta rule token by token and in pieces, against its definition in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

HEADS, KEY, VALUE = 3, 8, 5
CLOSE = 2e-5


@pytest.fixture(autouse=True, scope="module")
def _launch_blocking() -> None:
    ms.runtime.launch_blocking()


def unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def inputs(tokens: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "q": unit(random.standard_normal((tokens, HEADS, KEY))) * KEY**-0.5,
        "k": unit(random.standard_normal((tokens, HEADS, KEY))),
        "v": random.standard_normal((tokens, HEADS, VALUE)),
        "decay": -(random.random((tokens, HEADS)) ** 4),
        "rate": random.random((tokens, HEADS)),
    }


def defined(given: dict[str, Any], state: Any) -> tuple[Any, Any]:
    """Read the state [H, D, V] behind each token."""
    made = []
    for q, k, v, decay, rate in zip(*given.values(), strict=True):
        state = state * np.exp(decay)[:, None, None]
        new = (v - np.einsum("hd,hdv->hv", k, state)) * rate[:, None]
        state = state + k[:, :, None] * new[:, None]
        made.append(np.einsum("hd,hdv->hv", q, state))
    return np.stack(made), state


def computed(rule: Any, given: dict[str, Any], state: Any) -> tuple[Any, Any]:
    tensors = (ms.Tensor(it.astype(np.float32)) for it in (*given.values(), state))
    made, left = rule(*tensors)
    return made.asnumpy(), left.asnumpy()


def prompt_rule() -> Any:
    from msx_llm.kernels.cpu.delta import PromptRule

    return PromptRule(KEY, VALUE)


def token_rule() -> Any:
    from msx_llm.kernels.cpu.delta import TokenRule

    return TokenRule(KEY, VALUE)


@pytest.mark.parametrize("tokens", [2, 63, 64, 65, 150])
def test_a_prompt_behind_another_state(tokens: int) -> None:
    given = inputs(tokens)
    state = np.random.default_rng(1).standard_normal((HEADS, KEY, VALUE))
    made, left = computed(prompt_rule(), given, state.reshape(1, -1))
    wanted, last = defined(given, state)
    np.testing.assert_allclose(made, wanted, atol=CLOSE)
    np.testing.assert_allclose(left.reshape(last.shape), last, atol=CLOSE)


def test_one_token_of_each_text() -> None:
    given = inputs(4)
    states = np.random.default_rng(1).standard_normal((4, HEADS, KEY, VALUE))
    made, left = computed(token_rule(), given, states.reshape(4, -1))
    for text in range(4):
        own = {name: it[text : text + 1] for name, it in given.items()}
        wanted, last = defined(own, states[text])
        np.testing.assert_allclose(made[text], wanted[0], atol=CLOSE)
        np.testing.assert_allclose(left[text].reshape(last.shape), last, atol=CLOSE)


def test_padding_leaves_a_state_as_it_is() -> None:
    given = inputs(70)
    given["decay"][41:] = given["rate"][41:] = 0
    _, left = computed(prompt_rule(), given, np.zeros((1, HEADS * KEY * VALUE)))
    _, last = defined({name: it[:41] for name, it in given.items()}, np.zeros((HEADS, KEY, VALUE)))
    np.testing.assert_allclose(left.reshape(last.shape), last, atol=CLOSE)


def test_the_same_token_over_and_over() -> None:
    """Keys that are all one and hardly decay: powers of what is solved would grow beyond what float32 adds up."""
    given = {name: np.repeat(it, 128, axis=0) for name, it in inputs(1).items()}
    given["decay"][:], given["rate"][:] = -1e-4, 0.999
    state = np.zeros((HEADS, KEY, VALUE))
    made, left = computed(prompt_rule(), given, state.reshape(1, -1))
    wanted, last = defined(given, state)
    np.testing.assert_allclose(made, wanted, atol=CLOSE)
    np.testing.assert_allclose(left.reshape(last.shape), last, atol=CLOSE)


@pytest.mark.parametrize("size", [1, 2, 5, 16])
def test_an_inverse_of_any_size(size: int) -> None:
    from msx_llm.kernels.cpu.delta import UnitInverse

    given = np.random.default_rng(0).standard_normal((2, size, size)).astype(np.float32)
    below = np.tril(given, -1)
    found = UnitInverse(size)(ms.Tensor(below)).asnumpy()
    np.testing.assert_allclose(found, np.linalg.inv(below + np.eye(size)), rtol=1e-4, atol=1e-4)


def test_rows_of_states() -> None:
    from msx_llm.kernels.cpu.states import PADDING, ZEROS, StateLayout

    layout = StateLayout(3, kernel=4)
    assert layout.size == 8
    before, after, valid, tail = layout.places([2], np.array([[0, 1, -1, -1]]))
    assert (before.tolist(), after.tolist()) == ([ZEROS], [6])
    assert valid.tolist() == [True, True, False, False]
    assert tail.tolist() == [2, 3, 4], "the last of those before, and both tokens"
    before, after, valid, _ = layout.places([2, 0, None], np.array([[2], [0], [-1]]))
    assert before.tolist() == [6, ZEROS, ZEROS]
    assert after.tolist() == [6, 2, PADDING]
    assert valid.tolist() == [True, True, False]
    with pytest.raises(ValueError, match="slot 2 has no state behind 2 tokens"):
        layout.places([2], np.array([[2]]))


def test_rows_of_states_that_are_kept() -> None:
    from msx_llm.kernels.cpu.states import StateLayout

    layout = StateLayout(3, kernel=4)
    layout.places([0], np.array([[0, 1, 2]]))
    assert layout.kept(0) == (2, 3)
    layout.places([0], np.array([[3]]))
    assert (layout.row(0, 3), layout.row(0, 4)) == (3, 2)
    assert [it.tolist() for it in layout.copied(0, 1, 3)] == [[3, 3], [4, 5]]
    assert [it.tolist() for it in layout.copied(0, 0, 3)] == [[3], [2]]
    layout.forget()
    with pytest.raises(ValueError, match="slot 1 has no state"):
        layout.row(1, 3)
