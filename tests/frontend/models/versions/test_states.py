"""Which states of a model version may follow which."""

from __future__ import annotations

from itertools import product

import pytest

from msx_frontend.models.versions.states import ImpossibleTransition, ModelState, move

LIVING = ("WAITING", "LOADING", "READY", "DEGRADED", "ASLEEP", "FAILED")
POSSIBLE = {*product(LIVING, (*LIVING, "DRAINING")), ("DRAINING", "GONE")} - {("DEGRADED", "LOADING")}


@pytest.mark.parametrize(("current", "wanted"), list(product(ModelState, ModelState)))
def test_moves(current: ModelState, wanted: ModelState) -> None:
    if current is wanted or (current.value, wanted.value) in POSSIBLE:
        assert move(current, wanted) is wanted
    else:
        with pytest.raises(ImpossibleTransition, match=f"from {current.value} to {wanted.value}"):
            move(current, wanted)
