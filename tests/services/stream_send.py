"""Streams as TorchServe's handlers do: intermediate sends, then a return that is the last chunk."""

from msx_sdk import Handler, send_intermediate_predict_response


class StreamSend(Handler):
    def handle(self, data, context):
        for word in ("one ", "two "):
            words = [word for _ in data]
            send_intermediate_predict_response(words, context.request_ids, "Intermediate", 200, context)
        return ["three" for _ in data]
