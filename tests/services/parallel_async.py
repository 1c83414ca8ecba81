"""An async handler that cannot lead, which no group of several ranks can run."""


async def handle(data, context):
    return [row["body"] for row in data]
