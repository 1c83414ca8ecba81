"""Answers a describe call with metadata of its own, everything else with the body."""


def handle(data, context):
    if context.get_request_header(0, "describe") == "True":
        return [{"labels": ["cat", "dog"], "nested": {"a": 1}}]
    return [row["body"] for row in data]
