"""Rows of a batch in common arrays: which requests share one, and who may rely on it."""

from typing import Any

import numpy as np
import pytest

from msx_backend.handlers import _batching
from msx_backend.handlers._batching import run_all
from msx_backend.handlers._joined import JoinedRequests, JoinedRows, RowBuffer, join
from msx_core.mindspore.joined_rows import ANY
from tests.backend.handlers.test_batching import Plain, rows, values


def wide(*numbers: float) -> list[Any]:
    return [np.array([numbers], np.float32)]


def test_rows_of_one_shape_stand_in_one_array() -> None:
    requests = [*rows(1, 2), wide(1, 2, 3), *rows(1), wide(4, 5, 6)]
    before = [own[0].tolist() for own in requests]
    narrow, broad = join(requests)
    assert [len(narrow.arrays[0]), len(broad.arrays[0])] == [4, 2]
    assert [own[0].tolist() for own in requests] == before
    assert all(own[0].base is (broad if own[0].shape[1] == 3 else narrow).arrays[0] for own in requests)


def test_each_input_has_an_array() -> None:
    left, right = [[np.full((n, 2), n), np.full((n, 3), -n)] for n in (1, 2)]
    [joined] = join([left, right])
    assert [array.shape for array in joined.arrays] == [(3, 2), (3, 3)]
    assert right[1].tolist() == [[-2] * 3] * 2


def test_a_request_alone_is_not_copied() -> None:
    requests = [*rows(2), wide(1, 2, 3)]
    before = [own[0] for own in requests]
    assert join(requests) == []
    assert all(own[0] is array for own, array in zip(requests, before, strict=True))


def doubled(requests: list[list[Any]], inputs: Any) -> list[Any]:
    return values(run_all(Plain(lambda x: x[:, 0] * 2), requests, ANY, inputs))


def test_joined_rows_are_not_concatenated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = rows(1, 3)
    inputs = JoinedRequests([], join(requests))
    monkeypatch.setattr(_batching, "concatenated", None)
    assert doubled(requests, inputs) == [[0], [2, 4, 6]]


@pytest.mark.parametrize("change", ["array", "order", "fewer"])
def test_what_a_subclass_changes_counts(change: str) -> None:
    """A handler of users that derives from a built-in one may give requests other arrays, or leave some out."""
    requests = rows(1, 1, 1)
    inputs = JoinedRequests([], join(requests))
    if change == "array":
        requests[1][0] = np.array([[7, 0]], np.float32)
    elif change == "order":
        requests.reverse()
    else:
        del requests[1]
    expected = [(own[0][:, 0] * 2).tolist() for own in requests]
    assert doubled(requests, inputs) == expected


def test_what_a_subclass_writes_into_an_array_counts() -> None:
    requests = rows(1, 1)
    inputs = JoinedRequests([], join(requests))
    requests[1][0] += 5
    assert doubled(requests, inputs) == [[0], [12]]


def test_a_buffer_grows_with_its_rows() -> None:
    """Nothing is allocated for what a client only claims."""
    buffer = RowBuffer((2,), 1)
    for n in range(5):
        buffer.add(np.array([n, n]))
    assert buffer.rows.tolist() == [[n, n] for n in range(5)]


def test_rows_that_are_taken_back_leave_no_hole() -> None:
    buffer = RowBuffer((1,), 3)
    buffer.add(np.array([1]))
    start = buffer.used
    buffer.add(np.array([2]))
    buffer.used = start
    buffer.add(np.array([3]))
    assert buffer.rows.tolist() == [[1], [3]]


def test_one_group_does_not_stand_for_another() -> None:
    joined = JoinedRows([np.zeros((2, 1))], [[np.zeros((1, 1))], [np.zeros((1, 1))]])
    assert not joined.holds(joined.views[:1])
    assert joined.holds(joined.views)
