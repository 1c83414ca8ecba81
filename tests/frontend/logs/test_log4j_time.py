from __future__ import annotations

import re

from msx_frontend.logs.log4j_time import log4j_time


def test_log4js_time() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,690", log4j_time(1795198064.690))
