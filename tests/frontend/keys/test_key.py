from __future__ import annotations

import pytest

from msx_core.service_errors import ModelNotAllowed
from msx_frontend.keys.key import LONGEST, digest_in, digest_of
from tests.frontend.keys.some import some_key


def test_a_key_without_a_list_of_models_opens_all() -> None:
    assert some_key().allows("any")
    some_key().check_model("any")


def test_a_key_with_a_list_of_models_opens_those_alone() -> None:
    key = some_key("team", models=("a", "b"))
    assert [key.allows(model) for model in "abc"] == [True, True, False]
    with pytest.raises(ModelNotAllowed, match="team"):
        key.check_model("c")
    key.check_model("a:method")
    with pytest.raises(ModelNotAllowed, match="not for model c:a"):
        key.check_model("c:a")


def test_the_longest_key_is_found_and_a_longer_header_is_not_read() -> None:
    longest = "k" * LONGEST
    assert digest_in(f"Bearer {longest}") == digest_of(longest)
    assert digest_in("Bearer " + "k" * (2 * LONGEST)) == b""
    assert digest_in(None) == b""
