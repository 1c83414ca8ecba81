"""Raises, or returns, what the request asks for."""

from ts.utils.util import PredictionException


def handle(data, context):
    if data is None:
        return None
    order = data[0]["body"]
    if "prediction" in order:
        raise PredictionException(*order["prediction"])
    if "memory" in order:
        raise MemoryError(order["memory"])
    if "runtime" in order:
        raise RuntimeError(order["runtime"])
    if order.get("return") == "not a list":
        return {"a": 1}
    if order.get("return") == "too many":
        return [1] * (len(data) + 1)
    if order.get("return") == "unserializable":
        return [object()] * len(data)
    return ["fine"] * len(data)
