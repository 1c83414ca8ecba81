"""Which states of a model version may follow which."""

from __future__ import annotations

from itertools import product

import pytest

from msx_frontend.models.states import ImpossibleMove, ModelState, move

POSSIBLE = {
    ("LOADING", "READY"),
    ("LOADING", "DEGRADED"),
    ("LOADING", "FAILED"),
    ("LOADING", "DRAINING"),
    ("READY", "LOADING"),
    ("READY", "DEGRADED"),
    ("READY", "FAILED"),
    ("READY", "DRAINING"),
    ("DEGRADED", "READY"),
    ("DEGRADED", "FAILED"),
    ("DEGRADED", "DRAINING"),
    ("FAILED", "LOADING"),
    ("FAILED", "READY"),
    ("FAILED", "DEGRADED"),
    ("FAILED", "DRAINING"),
    ("DRAINING", "GONE"),
}


@pytest.mark.parametrize(("current", "wanted"), list(product(ModelState, ModelState)))
def test_moves(current: ModelState, wanted: ModelState) -> None:
    if current is wanted or (current.value, wanted.value) in POSSIBLE:
        assert move(current, wanted) is wanted
    else:
        with pytest.raises(ImpossibleMove, match=f"from {current.value} to {wanted.value}"):
            move(current, wanted)
