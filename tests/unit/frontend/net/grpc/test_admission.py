"""The class of a call's requests, as far as its key allows it."""

from __future__ import annotations

import pytest

from msx_frontend.errors import BadRequest, PriorityNotAllowed
from msx_frontend.keys.key import Key, Kind
from msx_frontend.net.grpc.admission import Admission
from msx_frontend.priorities import HIGH, LOW, NORMAL
from tests.unit.frontend.keys.some import some_key


class Asked:
    given_id = authorization = trace = None
    id = key_name = session = ""

    def __init__(self, priority: str) -> None:
        self.asked_priority = priority


class Anybody:
    def check(self, kind: Kind, authorization: str | None) -> Key:
        return some_key("team-a")


@pytest.mark.parametrize(("text", "priority"), [("", NORMAL), ("low", LOW), ("normal", NORMAL)])
def test_what_is_granted(text: str, priority: int) -> None:
    assert Admission(Anybody()).admit(Asked(text), "inference").priority == priority


def test_without_keys_all_classes_are_open() -> None:
    assert Admission(None).admit(Asked("high"), "inference").priority == HIGH


def test_what_is_refused() -> None:
    with pytest.raises(PriorityNotAllowed, match="team-a"):
        Admission(Anybody()).admit(Asked("high"), "inference")
    with pytest.raises(BadRequest):
        Admission(Anybody()).admit(Asked("urgent"), "inference")


@pytest.mark.parametrize("text", ["high", "urgent"])
def test_management_has_no_classes(text: str) -> None:
    """A proxy may write the header into all that it passes on."""
    assert Admission(Anybody()).admit(Asked(text), "management").priority == NORMAL
