from __future__ import annotations

from pathlib import Path

import pytest

from msx_frontend.devices.pid_namespace import is_of_host


@pytest.mark.parametrize(("link", "host"), [("pid:[4026531836]", True), ("pid:[4026532841]", False), (None, False)])
def test_the_hosts_namespace_has_the_same_number_in_every_kernel(tmp_path: Path, link: str | None, host: bool) -> None:
    if link is not None:
        (tmp_path / "pid").symlink_to(link)
    assert is_of_host(tmp_path / "pid") is host
