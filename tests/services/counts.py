"""Streams the numbers up to the one that it is sent, a line each; works alike over HTTP and gRPC."""

from msx_sdk import Handler


class Counts(Handler):
    def handle(self, data, context):
        most = [int(bytes(row["body"])) for row in data]
        for n in range(1, max(most) + 1):
            yield [f"{n}\n" for _ in most]
