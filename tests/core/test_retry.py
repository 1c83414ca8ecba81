"""When refused clients may ask again."""

from __future__ import annotations

import pytest

from msx_core.retry import retry_headers, retry_metadata
from tests.retry import told_wait


@pytest.mark.parametrize(("wait", "least", "most"), [(0, 1, 2), (3, 3, 6), (14, 14, 28), (20, 15, 30), (9999, 15, 30)])
def test_from_the_wait_to_twice_as_long_within_its_bounds(wait: float, least: float, most: float) -> None:
    told = [told_wait(dict(retry_headers(wait))) for _ in range(200)]
    assert least <= min(told) < max(told) <= most
    assert max(told) - min(told) > (most - least) / 2, "those who are refused together come back together"


def test_grpcs_clients_have_a_name_of_their_own_for_it() -> None:
    (after, seconds), (after_ms, milliseconds) = retry_headers(5)
    told = [(after, seconds), (after_ms, milliseconds)]
    assert retry_metadata([("x-workflow-node", "a"), *told]) == [*told, ("grpc-retry-pushback-ms", milliseconds)]
    assert retry_metadata([]) == []
