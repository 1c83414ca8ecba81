from __future__ import annotations

import pytest

from msx_sdk.context import NoRequestError
from msx_torchserve.packages.ts.context import Context, RequestProcessor


def made() -> Context:
    return Context("m", "/models/m", {"model": {}}, 4, 1, "0.12.0", False, None, {"a": 1})


def test_made_as_torchserve_does() -> None:
    context = made()
    assert context.model_name == "m"
    assert context.model_yaml_config == {"a": 1}
    properties = context.system_properties
    assert (properties["model_dir"], properties["gpu_id"], properties["batch_size"]) == ("/models/m", 1, 4)
    assert (properties["server_name"], properties["server_version"]) == ("MMS", "0.12.0")
    assert properties["limit_max_image_pixels"] is False
    with pytest.raises(NoRequestError):
        context.get_request_id()


def test_requests_of_a_unit_test() -> None:
    """A handler's test may set them in either order."""
    context = made()
    context.request_processor = [RequestProcessor({"X-A": "1"}), RequestProcessor({})]
    context.request_ids = {0: "first", 1: "second"}
    assert context.request_ids == {0: "first", 1: "second"}
    assert context.get_request_header(0, "X-A") == "1"
    context.request_processor = [RequestProcessor({"X-A": "2"}), RequestProcessor({})]
    assert context.get_request_id(1) == "second"
    assert context.get_request_header(0, "x-a") == "2"


def test_what_a_processor_was_told_is_the_contexts() -> None:
    context, processor = made(), RequestProcessor({"a": "b"})
    processor.report_status(404, "gone")
    context.request_processor = [processor]
    assert context.get_response_status(0) == (404, "gone")
    context.set_response_header(0, "X-B", "c")
    assert processor.get_response_header("X-B") == "c"
    assert processor.get_request_property("a") == "b"
