"""The key of a call, and the class of its requests, as far as the key allows it."""

from __future__ import annotations

import pytest

from msx_core.priorities import HIGH, LOW, NORMAL
from msx_core.service_errors import BadRequest, InvalidKey, PriorityNotAllowed, TooManyRequests
from msx_frontend.keys.key import Key
from msx_net.grpc.admission import Admission, Admitted, SentKey, admit
from msx_net.keys import Kind
from tests.frontend.keys.some import SELDOM, some_key


class Keys:
    """One key at a time, and how often it was looked up."""

    def __init__(self, key: Key | None = None) -> None:
        self.key = key
        self.looked_up = 0

    def check(self, kind: Kind, authorization: str | None) -> Key:
        self.looked_up += 1
        if self.key is None:
            raise InvalidKey("Token refused")
        return self.key


class Asked:
    trace = None
    id = session = ""

    def __init__(self, priority: str, keys: Keys | None = None, kind: Kind = "inference") -> None:
        self.asked_priority, self.kind = priority, kind
        self.sent_key = Admission(keys).sent_key(kind, "Bearer K")

    def admitted(self) -> Admitted:
        return admit(self, self.kind)


def anybody() -> Keys:
    return Keys(some_key("team-a"))


@pytest.mark.parametrize(("text", "priority"), [("", NORMAL), ("low", LOW), ("normal", NORMAL)])
def test_what_is_granted(text: str, priority: int) -> None:
    assert Asked(text, anybody()).admitted().priority == priority


def test_without_keys_all_classes_are_open() -> None:
    assert Asked("high").admitted().priority == HIGH


def test_what_is_refused() -> None:
    with pytest.raises(PriorityNotAllowed, match="team-a"):
        Asked("high", anybody()).admitted()
    with pytest.raises(BadRequest):
        Asked("urgent", anybody()).admitted()


@pytest.mark.parametrize("text", ["high", "urgent"])
def test_management_has_no_classes(text: str) -> None:
    """A proxy may write the header into all that it passes on."""
    assert Asked(text, anybody(), "management").admitted().priority == NORMAL


def test_a_key_is_looked_up_once_while_it_lasts() -> None:
    keys = anybody()
    sent = SentKey(keys, "inference", "Bearer K")
    assert [sent.take(), sent.valid(), sent.take()] == [keys.key] * 3
    assert (keys.looked_up, sent.name) == (1, "team-a")


def test_a_key_that_was_withdrawn_and_given_again() -> None:
    keys = anybody()
    sent = SentKey(keys, "inference", "Bearer K")
    sent.take().until = 0.0
    keys.key = None
    for ask in (sent.take, sent.valid):
        with pytest.raises(InvalidKey):
            ask()
    assert (sent.key, sent.name) == (None, "")
    keys.key = some_key("team-b")
    assert sent.valid() is keys.key


def test_calls_above_the_rate_are_refused_and_asking_again_is_no_call() -> None:
    sent = SentKey(Keys(some_key("team-a", rate=SELDOM)), "inference", "Bearer K")
    key = sent.take()
    assert sent.valid() is key
    with pytest.raises(TooManyRequests):
        sent.take()
    assert sent.name == "team-a"


def test_what_a_key_allows_is_learnt_again() -> None:
    keys = Keys(some_key("team-a"))
    keys.key.priority = HIGH  # type: ignore[union-attr]
    admitted = Asked("high", keys).admitted()
    assert (admitted.priority, admitted.may_use("m")) == (HIGH, True)
    keys.key.until = 0.0  # type: ignore[union-attr]
    keys.key = some_key("team-a", models=("other",))
    with pytest.raises(PriorityNotAllowed):
        admitted.ask_again()
    assert not admitted.may_use("m")


def test_a_public_method_has_no_key() -> None:
    assert Admission(anybody()).sent_key(None, "Bearer K") is None
    assert Admitted("", None).may_use("m")
