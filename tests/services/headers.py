"""Answers with the request's headers as JSON, and with the status and the headers that the body asks for."""

import json

from msx_sdk import Handler


class Headers(Handler):
    def handle(self, data, context):
        return [self.answer(idx, order_of(row), context) for idx, row in enumerate(data)]

    def answer(self, idx, order, context):
        context.set_response_status(order.get("status", 200), order.get("phrase", ""), idx)
        context.set_response_content_type(idx, order.get("type", "application/json"))
        for name, value in order.get("headers", {}).items():
            context.set_response_header(idx, name, value)
        return dict(context.get_all_request_header(idx))


def order_of(row):
    body = row["body"]
    return body if isinstance(body, dict) else json.loads(body)  # gRPC's fields have no content type
