"""Streams as many chunks of a mebibyte as the body says."""


async def handle(data, context):
    for _ in range(int(data[0]["body"])):
        yield [bytes(1 << 20)]
