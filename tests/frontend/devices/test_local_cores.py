import pytest

from msx_frontend.devices.local_cores import core_list, parse_cores


@pytest.mark.parametrize(
    ("text", "cores"), [("0-2,8", {0, 1, 2, 8}), ("5", {5}), ("", set()), ("NA", set()), ("3-1", set())]
)
def test_lists_of_cores(text: str, cores: set[int]) -> None:
    assert parse_cores(text) == cores


def test_a_list_of_cores_is_bounded() -> None:
    assert len(parse_cores("0-999999999999")) == 4096


@pytest.mark.parametrize("text", ["", "3", "0-2,8", "4-5,7-9"])
def test_a_list_is_written_as_it_is_read(text: str) -> None:
    assert core_list(parse_cores(text)) == text
