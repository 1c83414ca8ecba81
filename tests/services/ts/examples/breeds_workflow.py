"""As the functions of TorchServe's workflow examples: images to base64, and one answer of what both models said."""

import base64
import json


def pre_processing(data, context):
    if data is None:
        return data
    return [base64.b64encode(row.get("data") or row.get("body")).decode() for row in data]


def aggregate_func(data, context):
    if data is None:
        return None
    first, second = (json.loads(data[0].get(name)) for name in ("first_model", "second_model"))
    return [{"first": first["name"], "second": second["name"]}]
