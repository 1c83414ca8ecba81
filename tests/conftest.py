from __future__ import annotations

from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from msx_sdk._internal.batch import current_request_ids

settings.register_profile("long", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For scripts/test-all."""


@pytest.fixture(autouse=True)
def no_request_of_another_test() -> Generator[None]:
    """A context that was given a batch, and no end, would go on naming its requests in logs and metrics."""
    yield
    current_request_ids.set("")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """MindSpore's CPU collectives fail now and then. No other test is run again: its cause is to be found."""
    for item in items:
        if item.get_closest_marker("collectives"):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports travel between processes as UTF-8, and some tests log what has no UTF-8 on purpose."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report
