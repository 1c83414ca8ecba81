"""The oldest form: an instance in the module, and a function that initialises it when it is called without data."""

from ts.torch_handler.base_handler import BaseHandler


class Service(BaseHandler):
    def initialize(self, context):
        self.name = context.model_name
        self.initialized = True

    def preprocess(self, data):
        return [row.get("data") or row.get("body") for row in data]

    def inference(self, data, *args, **kwargs):
        return data

    def postprocess(self, data):
        return [f"{self.name}: {bytes(value).decode()}" for value in data]


_service = Service()


def handle(data, context):
    if not _service.initialized:
        _service.initialize(context)
    if data is None:
        return None
    return _service.handle(data, context)


def entry_point(data, context):
    return None if data is None else ["the function that was named"] * len(data)
