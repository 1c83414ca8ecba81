"""From URLs to servables."""

from __future__ import annotations

import pytest

from msx_mindspore_serving.family.errors import ServingError, Spec
from msx_mindspore_serving.family.target import parse_target


@pytest.mark.parametrize(
    ("target", "spec"),
    [
        ("/model/add:f", Spec("add", "f")),
        ("/model/add/version/2:f", Spec("add", "f", 2)),
        ("/version/2/model/add:f", Spec("add", "f", 2)),
        ("/model/add/version/0:f", Spec("add", "f")),
        ("/model/add/version/4294967294:f", Spec("add", "f", 4294967294)),
        ("/model/add/version/1x:f", Spec("add", "f", 1)),
        ("/model/add:f?a=b", Spec("add", "f?a=b")),
        ("/model/add:f:g/h", Spec("add", "f:g/h")),
        ("/model/a%64d:f", Spec("a%64d", "f")),
        ("/model/conversion:f", Spec("conversion", "f")),
        ("/any/model/add/more:f", Spec("add", "f")),
        ("/model-add/x/version-3:f", Spec("add", "f", 3)),
    ],
)
def test_urls(target: str, spec: Spec) -> None:
    assert parse_target(target) == spec


NO_MODEL = "please check url, the keyword:[model] must contain."
NO_METHOD = "please check url, the keyword:[service method] must contain."
NOT_A_NUMBER = "please check url, the keyword:[version] value invalid, request version number "
RANGE = "please check url, version number range failed, request version number "


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("/", NO_MODEL),
        ("/model", NO_MODEL),
        ("/model/", NO_MODEL),
        ("/model/:f", NO_MODEL),
        ("/version/1", NO_MODEL),
        ("/model/add/version/x:f", NOT_A_NUMBER + "x"),
        ("/model/add/version/:f", NOT_A_NUMBER),
        ("/model/add/version/-1:f", RANGE + "-1"),
        ("/model/add/version/4294967295:f", RANGE + "4294967295"),
        ("/model/add/version/" + "9" * 5000 + ":f", RANGE + "9" * 192 + "..." + "9" * 192),
        ("/model/add", NO_METHOD),
        ("/model/add:", NO_METHOD),
        ("/model/add/version/1", NO_METHOD),
    ],
)
def test_urls_that_are_refused(target: str, message: str) -> None:
    with pytest.raises(ServingError) as raised:
        parse_target(target)
    assert raised.value.message == message
