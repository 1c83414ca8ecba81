"""Schemas of models that announce their tensors."""

from __future__ import annotations

from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from msx_core.methods import MethodInfo
from msx_frontend.apis.openapi.models import DescribedModel, with_models
from msx_frontend.models.schemas.tensors import request_schema, response_schema
from msx_sdk.kserve import Signature, TensorMeta
from tests.frontend.apis.openapi.test_document import made

ROWS = TensorMeta("rows", "FP32", (-1, 3))
SIGNATURE = Signature((ROWS, TensorMeta("names", "BYTES", (-1,))), (TensorMeta("norm", "FP32", (-1,)),))
GOOD_ROWS = {"name": "rows", "datatype": "FP32", "shape": [2, 3], "data": [[1, 2, 3], [4, 5, 6]]}
GOOD_NAMES = {"name": "names", "datatype": "BYTES", "shape": [1], "data": ["a"]}


def fits(signature: Signature, *inputs: object) -> bool:
    return bool(OAS31Validator(request_schema(signature)).is_valid({"inputs": list(inputs)}))


def assert_added_paths_are_valid(whole: dict[str, Any]) -> None:
    """Validate added paths; those of all models are valid by test_document.py."""
    added = {path: one for path, one in whole["paths"].items() if path not in made("inference")["paths"]}
    OpenAPIV31SpecValidator({**whole, "paths": added}).validate()


def test_a_document_with_models_is_valid() -> None:
    whole = with_models(made("inference"), [DescribedModel("m", SIGNATURE), DescribedModel("a b", SIGNATURE)])
    assert_added_paths_are_valid(whole)
    assert {"/v2/models/m/infer", "/predictions/m", "/v2/models/a%20b/infer"} <= whole["paths"].keys()


def test_examples_fit() -> None:
    whole = with_models(made("inference"), [DescribedModel("m", SIGNATURE)])
    for path in ("/v2/models/m/infer", "/predictions/m"):
        body = whole["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        OAS31Validator(body["schema"]).validate(body["example"])
        assert [len(one["data"]) for one in body["example"]["inputs"]] == [3, 1]


def test_a_large_tensor_has_no_example() -> None:
    image = Signature((TensorMeta("x", "FP32", (-1, 3, 224, 224)),), ())
    whole = with_models(made("inference"), [DescribedModel("m", image)])
    assert "example" not in whole["paths"]["/predictions/m"]["post"]["requestBody"]["content"]["application/json"]


def test_methods_of_models() -> None:
    schema = {"type": "object", "required": ["x"]}
    methods = (
        MethodInfo(name=""),
        MethodInfo(name="top", summary="The best"),
        MethodInfo(name="b", request_schema=schema),
    )
    whole = with_models(made("inference"), [DescribedModel("m", Signature(), methods)])
    assert_added_paths_are_valid(whole)
    paths = whole["paths"]
    assert [path for path in paths if path.startswith(("/predictions/m", "/v2/models/m"))] == [
        "/predictions/m:top",
        "/predictions/m:b",
    ]
    assert paths["/predictions/m:top"]["post"]["summary"] == "The best"
    assert paths["/predictions/m:b"]["post"]["requestBody"]["content"]["application/json"]["schema"] == schema


def test_it_has_what_the_route_of_all_models_has() -> None:
    plain = made("inference")
    whole = with_models(plain, [DescribedModel("m", SIGNATURE)])
    of_model, general = whole["paths"]["/v2/models/m/infer"]["post"], plain["paths"]["/v2/models/{model}/infer"]["post"]
    assert (of_model["security"], of_model["responses"]["default"]) == (
        general["security"],
        general["responses"]["default"],
    )
    assert [(one["in"], one["name"]) for one in of_model["parameters"]] == [("header", "x-msx-priority")]
    assert "/v2/models/m/infer" not in plain["paths"]


def test_a_listener_without_predictions_has_no_models() -> None:
    plain = made("management")
    assert with_models(plain, [DescribedModel("m", SIGNATURE)])["paths"] == plain["paths"]


@pytest.mark.parametrize("inputs", [(GOOD_ROWS, GOOD_NAMES), (GOOD_NAMES, GOOD_ROWS)])
def test_what_fits(inputs: tuple[object, ...]) -> None:
    assert fits(SIGNATURE, *inputs)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "other"},
        {"datatype": "FP64"},
        {"shape": [2, 4]},
        {"shape": [2]},
        {"shape": [-1, 3]},
        {"data": ["text"]},
    ],
)
def test_what_does_not_fit(wrong: dict[str, Any]) -> None:
    assert not fits(SIGNATURE, GOOD_ROWS | wrong, GOOD_NAMES)


def test_inputs_that_are_missing() -> None:
    assert not fits(SIGNATURE, GOOD_ROWS)
    assert fits(Signature(SIGNATURE.inputs, SIGNATURE.outputs, enforced=False), GOOD_ROWS)


def test_a_scalar_has_no_sizes() -> None:
    signature = Signature((TensorMeta("x", "INT32", ()),), ())
    assert fits(signature, {"name": "x", "datatype": "INT32", "shape": [], "data": [1]})
    assert not fits(signature, {"name": "x", "datatype": "INT32", "shape": [1], "data": [1]})


def test_the_reply() -> None:
    check = OAS31Validator(response_schema(SIGNATURE))
    norm = {"name": "norm", "datatype": "FP32", "shape": [2], "data": [1.5, 2]}
    assert check.is_valid({"model_name": "m", "outputs": [norm]})
    assert not check.is_valid({"model_name": "m", "outputs": [norm | {"name": "other"}]})


OBJECT = {"$ref": "#/$defs/Q", "$defs": {"Q": {"type": "object", "properties": {"inner": {"$ref": "#/$defs/Q"}}}}}
JSON, MSGPACK = "application/json", "application/msgpack"


def test_types_of_a_handler() -> None:
    """They go before tensors, and each model's shared schemas have names of their own."""
    methods = (MethodInfo(name="", request_schema=OBJECT, reply_schema=OBJECT),)
    models = [DescribedModel("m", SIGNATURE, methods), DescribedModel("a b", Signature(), methods)]
    whole = with_models(made("inference"), models)
    assert_added_paths_are_valid(whole)
    content = whole["paths"]["/predictions/m"]["post"]["requestBody"]["content"]
    assert content[MSGPACK] == {"schema": {"$ref": "#/components/schemas/MRequestQ"}}
    assert content[JSON] == {**content[MSGPACK], "example": {}}
    inner = whole["components"]["schemas"]["ABReplyQ"]["properties"]["inner"]
    assert inner == {"$ref": "#/components/schemas/ABReplyQ"}
    assert "/v2/models/m/infer" in whole["paths"]
    assert "/v2/models/a%20b/infer" not in whole["paths"]


def test_titles_of_a_handlers_classes_begin_with_the_model() -> None:
    """Clients make classes of titles, and several models may have a class of one name."""
    inner = {"type": "object", "title": "Response"}
    schema = {"type": "object", "title": "Response", "properties": {"a": {"$ref": "#/$defs/Q"}}, "$defs": {"Q": inner}}
    whole = with_models(
        made("inference"), [DescribedModel("m", Signature(), (MethodInfo(name="", reply_schema=schema),))]
    )
    reply = whole["paths"]["/predictions/m"]["post"]["responses"]["200"]["content"][JSON]["schema"]
    assert (reply["title"], whole["components"]["schemas"]["MReplyQ"]["title"]) == ("MReply", "MReplyQ")


def test_a_reference_of_a_handlers_own_is_left_alone() -> None:
    schema = {"properties": {"a": {"$ref": "https://example.com/a.json"}, "$ref": {"$ref": "#/properties/a"}}}
    whole = with_models(
        made("inference"), [DescribedModel("m", Signature(), (MethodInfo(name="", request_schema=schema),))]
    )
    content = whole["paths"]["/predictions/m"]["post"]["requestBody"]["content"]
    assert content[JSON] == {"schema": schema}


def test_a_handler_that_announces_nothing_of_its_bodies() -> None:
    plain = made("inference")
    assert with_models(plain, [DescribedModel("m", Signature(), (MethodInfo(name=""),))])["paths"] == plain["paths"]
