"""A streaming handler in TorchServe's style: the words of each request's text, then their number."""

from ts.handler_utils.utils import send_intermediate_predict_response


def handle(data, context):
    if data is None:
        return None
    texts = [bytes(row.get("data") or row.get("body")).decode().split() for row in data]
    for step in range(max(map(len, texts))):
        words = [f"{text[step]}\n" if step < len(text) else "" for text in texts]
        send_intermediate_predict_response(words, context.request_ids, "Intermediate Prediction success", 200, context)
    return [f"{len(text)} words" for text in texts]
