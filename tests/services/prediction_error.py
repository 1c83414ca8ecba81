"""Ends each request with the status in its body."""

from msx_sdk import Handler, PredictionError


class Refuses(Handler):
    def inference(self, inputs):
        return [PredictionError(int(row["body"]), f"you asked for {int(row['body'])}") for row in inputs]
