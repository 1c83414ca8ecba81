from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest

from msx_core import non_finite as module
from msx_core.kserve.message import join
from msx_core.non_finite import TELL_EVERY, NonFinite, finite, first_place, non_finite
from msx_core.results import encode
from msx_core.typed.replies import TypedReply

NAN, INF = math.nan, math.inf


class Row(msgspec.Struct):
    scores: list[float]
    label: str | None = None


@dataclass
class Pair:
    left: Any
    right: Any = None


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (NAN, "its top"),
        ([0.0, [1.0, -INF]], "[1][1]"),
        ({"a": {"b": (1, NAN)}, "c": NAN}, "a.b[1]"),
        ({"a": np.array([[0, 1], [2, NAN]], "float16")}, "a[1][1]"),
        (np.float32(INF), "its top"),
        ([np.array(NAN)], "[0]"),
        (Row([0.5, NAN]), "scores[1]"),
        ([Pair(1, np.array([NAN]))], "[0].right[0]"),
        ({1: {2: NAN}}, "1.2"),
    ],
)
def test_the_first_member_is_named(value: Any, place: str) -> None:
    assert first_place(value) == place


@pytest.mark.parametrize(
    "value",
    [None, [None], "nan", b"", 1 << 70, 0.0, {"a": None}, np.arange(3), np.zeros(2), Row([1.0]), Pair(object())],
)
def test_a_null_of_the_handler_is_none(value: Any) -> None:
    assert first_place(value) is None


class Tensor:
    """As torch's, whose `dtype` is none of NumPy's."""

    dtype = "torch.float32"

    def __init__(self, values: list[float]) -> None:
        self._values = values

    def tolist(self) -> list[float]:
        if not self._values:
            raise RuntimeError("it is on a device")
        return self._values


def test_tensors_of_others_are_read_and_never_fail_a_reply() -> None:
    assert first_place({"y": Tensor([0.0, NAN])}) == "y[1]"
    assert first_place({"y": Tensor([0.0])}) is None
    assert first_place({"y": Tensor([]), "z": NAN}) is None


def test_a_long_name_is_cut() -> None:
    place = first_place({"n" * 10_000: NAN})
    assert place is not None
    assert len(place) < 2 * module.LONGEST_PLACE


def test_a_value_that_holds_itself_ends() -> None:
    value: list[Any] = []
    value.append(value)
    assert first_place(value) is None


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(non_finite, "count", lambda: found.append(1))
    monkeypatch.setattr(non_finite, "_told", -INF)
    return found


@pytest.mark.parametrize("encoder", [encode, TypedReply(""), lambda value: join({"outputs": value})])
def test_each_encoder_counts_such_replies(counted: list[int], encoder: Any) -> None:
    encoder([1.0, 2.0])
    encoder({"scores": None})
    assert counted == []
    for value in ([NAN], {"scores": [0.0, INF]}):
        assert b"null" in encoder(value)
    assert counted == [1, 1]


def test_what_pythons_encoder_writes_is_json_too(counted: list[int]) -> None:
    """An integer of more than 64 bits is its, and it would write `NaN`."""
    for encoder in (encode, TypedReply("")):
        made = encoder({"large": 1 << 70, "score": NAN, "array": np.array([INF])})
        assert json.loads(made, parse_constant=pytest.fail) == {"large": 1 << 70, "score": None, "array": [None]}
    assert counted == [1, 1]


def test_a_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    told = NonFinite(clock=lambda: now[0])
    with caplog.at_level(logging.WARNING, "msx.worker"):
        for at in (0.0, 1.0, TELL_EVERY, TELL_EVERY + 1):
            now[0] = at
            told.check(b'{"a":null}', {"a": NAN})
    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith(
        "a reply has NaN or an infinity at a, for which JSON has null: look at the model"
    )
    assert module.COUNTER in caplog.messages[0]


def test_most_replies_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "first_place", lambda value: pytest.fail("it was looked at"))
    encode({"scores": [0.5] * 100})


def test_a_copy_without_them() -> None:
    assert finite({"a": [NAN, (1.5, INF)], "b": "NaN"}) == {"a": [None, [1.5, None]], "b": "NaN"}
