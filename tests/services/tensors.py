"""Handlers of the Open Inference Protocol: one gives its inputs back, one answers as often as it is asked to."""

import numpy as np

from msx_sdk import InvalidInput


def mirror(data, context):
    return [mirrored(item["body"]) for item in data]


def mirrored(body):
    inputs = {tensor["name"]: tensor for tensor in body["inputs"]}
    if "refuse" in inputs:
        return InvalidInput("refuse: not this one")
    if "fail" in inputs:
        return ValueError("it broke")
    kept = ("name", "datatype", "shape", "data")
    outputs = [{key: tensor[key] for key in kept} for tensor in inputs.values()]
    kinds = {f"kind_{name}": type(tensor["data"]).__name__ for name, tensor in inputs.items()}
    return {"parameters": {**body.get("parameters", {}), **kinds}, "outputs": outputs}


def repeat(data, context):
    """`count` replies, each with its `index`; after them an error if `fail` is there."""
    inputs = {tensor["name"]: tensor["data"] for tensor in data[0]["body"]["inputs"]}
    for index in range(int(np.ravel(inputs["count"])[0])):
        yield [{"index": np.array([index], np.int32)}]
    if "fail" in inputs:
        raise InvalidInput("it broke in the middle")
