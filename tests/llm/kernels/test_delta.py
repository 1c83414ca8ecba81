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


@pytest.mark.parametrize("counts", [(1, 1, 1), (4,), (3, 1, 2), (2, 5, 1)])
def test_drafted_tokens_go_on_from_the_one_before(counts: tuple[int, ...]) -> None:
    """Each leaves a state; texts do not see each other."""
    from msx_llm.kernels.cpu.drafted_delta import DraftedRule

    tokens, texts = sum(counts), np.repeat(np.arange(len(counts)), counts)
    given = inputs(tokens)
    states = np.random.default_rng(1).standard_normal((len(counts), HEADS, KEY, VALUE))
    tensors = [ms.Tensor(it.astype(np.float32)) for it in (*given.values(), states[texts].reshape(tokens, -1))]
    made, left = DraftedRule(KEY, VALUE, tokens)(*tensors, ms.Tensor((texts + 1).astype(np.int32)))
    for row in range(tokens):
        own = np.flatnonzero(texts[: row + 1] == texts[row])
        wanted, last = defined({name: it[own] for name, it in given.items()}, states[texts[row]])
        np.testing.assert_allclose(made.asnumpy()[row], wanted[-1], atol=CLOSE)
        np.testing.assert_allclose(left.asnumpy()[row].reshape(last.shape), last, atol=CLOSE)


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


def layout_of(slots: int, drafts: int = 0) -> Any:
    from msx_llm.kernels.cpu.states import StateLayout
    from msx_llm.models.delta import DeltaConfig

    heads: dict[str, Any] = {"key_heads": 1, "value_heads": 1, "key": KEY, "value": VALUE}
    return StateLayout(DeltaConfig(**heads, kernel=4, layers=(True,), drafts=drafts), (slots,))


def test_rows_of_states() -> None:
    from msx_llm.kernels.cpu.states import PADDING, ZEROS

    layout = layout_of(3)
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
    layout = layout_of(3)
    layout.places([0], np.array([[0, 1, 2]]))
    assert layout.kept(0) == (2, 3)
    layout.places([0], np.array([[3]]))
    assert (layout.row(0, 3), layout.row(0, 4)) == (3, 2)
    assert [it.tolist() for it in layout.copied(0, 1, 3)] == [[3, 3], [4, 5]]
    assert [it.tolist() for it in layout.copied(0, 0, 3)] == [[3], [2]]
    layout.forget()
    with pytest.raises(ValueError, match="slot 1 has no state"):
        layout.row(1, 3)


def column(*positions: int) -> Any:
    return np.array(positions)[:, None]


def test_rows_of_drafted_tokens() -> None:
    """The first token of a text moves its state, those behind it leave some in rows behind those of all slots."""
    from msx_llm.kernels.cpu.states import PADDING, ZEROS

    layout = layout_of(4, drafts=1)
    assert layout.size == 2 + 4 * 2 + 4
    layout.places([2], np.array([[0, 1, 2]]))
    before, after, texts, _ = layout.places([2, 2, 2, None], column(3, 4, 5, -1))
    assert before.tolist() == [6, 6, 6, ZEROS]
    assert after.tolist() == [6, 10, 11, PADDING]
    assert texts.tolist() == [1, 1, 1, 0]
    assert [layout.row(2, length) for length in (4, 5, 6)] == [6, 10, 11]


@pytest.mark.parametrize(("accepted", "row"), [(0, 6), (1, 10), (2, 11)])
def test_a_text_goes_on_behind_any_drafted_token(accepted: int, row: int) -> None:
    """Then the others are forgotten: the text has other tokens at their positions."""
    layout = layout_of(4, drafts=1)
    layout.places([2], np.array([[0, 1, 2]]))
    layout.places([2, 2, 2, None], column(3, 4, 5, -1))
    start = 4 + accepted
    before, after, _, _ = layout.places([0, 2, None, None], column(0, start, -1, -1))
    assert (before[1], after[1]) == (row, 6)
    for length in {4, 5, 6} - {start + 1}:
        with pytest.raises(ValueError, match="slot 2 has no state"):
            layout.row(2, length)


def test_a_state_that_an_earlier_text_kept_is_passed_over() -> None:
    layout = layout_of(4, drafts=1)
    layout.places([2], np.array([[0, 1, 2, 3, 4]]))
    layout.kept(2)
    layout.places([2], np.array([[0, 1, 2]]))  # another text
    layout.places([2, 2, 2, None], column(3, 4, 5, -1))
    assert layout.places([2, None, None, None], column(5, -1, -1, -1))[0][0] == layout.size - 4


def test_drafts_take_rows_that_nobody_needs() -> None:
    """A row may be read in the step that writes it: all are read before."""
    layout = layout_of(3, drafts=1)
    layout.places([1, None, None], column(0, -1, -1))
    layout.places([1, 1, 1], column(1, 2, 3))
    before, after, _, _ = layout.places([1, 1, 1], column(4, 5, 6))
    assert (before.tolist(), after.tolist()) == ([9] * 3, [4, 8, 9])
    before, after, _, _ = layout.places([1, 1, None], column(7, 8, -1))
    assert (before.tolist()[:2], after.tolist()[:2]) == ([9] * 2, [4, 8])


def test_a_text_that_waits_keeps_its_states() -> None:
    """Another text takes two steps, each with many drafts, while one is read for it."""
    layout = layout_of(16, drafts=2)
    for slot in (0, 1):
        layout.places([slot], np.array([[0, 1, 2]]))
    for slot, start in ((0, 3), (1, 3), (1, 16)):
        layout.places([slot] * 13 + [None] * 3, column(*range(start, start + 13), -1, -1, -1))
    assert len({layout.row(0, length) for length in range(4, 17)}) == 13


def test_the_oldest_states_are_lost_where_there_are_too_few() -> None:
    layout = layout_of(3, drafts=1)
    for slot in (0, 1):
        layout.places([slot], np.array([[0]]))
        layout.places([slot] * 3, column(1, 2, 3))
    assert [layout.row(1, length) for length in (2, 3, 4)] == [4, 10, 8]
    with pytest.raises(ValueError, match="slot 0 has no state behind 3 tokens"):
        layout.row(0, 3)
    assert layout.row(0, 4) == 9


def test_what_the_convolution_sees_of_drafted_tokens() -> None:
    """Three earlier numbers of each of four rows are 0 to 11, the tokens themselves 12 to 15."""
    layout = layout_of(4, drafts=1)
    _, _, _, tail = layout.places([1, 1, 1, 0], column(0, 1, 2, 0))
    assert tail.reshape(4, 4).T.tolist() == [[0, 1, 2, 12], [4, 5, 12, 13], [8, 12, 13, 14], [9, 10, 11, 15]]


def test_a_text_of_one_slot_alone_has_no_drafts() -> None:
    layout = layout_of(1, drafts=1)
    before, after, texts, tail = layout.places([0], column(0))
    assert [before.tolist(), after.tolist(), texts.tolist(), tail.tolist()] == [[0], [2], [True], [1, 2, 3]]
