"""One bad reading of the tool ends no worker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.devices.accelerator import Device, DeviceStatus
from msx_frontend.devices.health import MISSING, DeviceHealth

GOOD, BAD, UNCLEAR = DeviceStatus("OK", True), DeviceStatus("Critical", False), DeviceStatus("NA")


def health(count: int = 1, first: DeviceStatus = GOOD) -> DeviceHealth:
    """After the reading of the start."""
    made = DeviceHealth([Device(f"f{number}", "") for number in range(count)])
    made.read({f"f{number}": first for number in range(count)})
    return made


def read(health: DeviceHealth, *statuses: DeviceStatus) -> list[list[int]]:
    return [health.read({"f0": status}) for status in statuses]


def test_two_bad_readings_in_a_row_make_it_unhealthy() -> None:
    one = health()
    assert read(one, BAD, GOOD, BAD, BAD, BAD) == [[], [], [], [0], []]
    assert one.unhealthy == {0: "Critical"}


def test_two_good_ones_in_a_row_make_it_healthy_again(caplog: pytest.LogCaptureFixture) -> None:
    one = health(first=BAD)
    read(one, GOOD, BAD, GOOD)
    assert one.unhealthy
    caplog.set_level("INFO")
    read(one, GOOD)
    assert one.unhealthy == {}
    assert caplog.messages[-1] == "device 0 (id f0) is healthy again"


def test_at_the_start_one_reading_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    assert health(2, first=BAD).unhealthy == {0: "Critical", 1: "Critical"}
    assert "device 1 (id f1) is unhealthy (Critical): no worker gets it" in caplog.text


def test_a_reading_that_failed_says_nothing() -> None:
    one = health()
    read(one, BAD)
    assert one.read({}) == []
    assert read(one, UNCLEAR, BAD) == [[], [0]], "neither does one without a word on health"


def test_a_first_reading_that_failed_is_not_the_first() -> None:
    one = DeviceHealth([Device("f0", "")])
    one.read({})
    assert read(one, BAD) == [[0]]


def test_a_device_that_is_listed_no_more_is_missing() -> None:
    two = health(2)
    assert [two.read({"f1": GOOD}) for _ in range(2)] == [[], [0]]
    assert two.unhealthy == {0: MISSING}


def test_a_device_that_was_never_listed_is_not_judged() -> None:
    """The tool may not list all that the driver has."""
    two = DeviceHealth([Device("f0", ""), Device("f1", "")])
    assert [two.read({"f0": GOOD}) for _ in range(3)] == [[]] * 3


@given(st.lists(st.sampled_from([GOOD, BAD, UNCLEAR]), max_size=30))
def test_a_verdict_changes_only_after_two_readings_against_it(statuses: list[DeviceStatus]) -> None:
    one = health()
    told: list[bool] = [True]
    for status in statuses:
        before = 0 not in one.unhealthy
        read(one, status)
        if status.healthy is not None:
            told.append(status.healthy)
        now = 0 not in one.unhealthy
        assert now == before or told[-2:] == [now, now]
