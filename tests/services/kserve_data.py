"""Answers each instance of KServe v1, or each input of v2, with its member `data`."""


def handle(data, context):
    return [row["data"] for row in data]
