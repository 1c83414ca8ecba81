"""Emits one sample of every kind at each call."""

from msx_sdk import Handler


class EmitsMetrics(Handler):
    def initialize(self, context):
        super().initialize(context)
        self.tokens = context.metrics.counter("tokens_total", labels=("kind",))
        self.slots = context.metrics.gauge("slots_in_use", help="Slots that hold a request")
        self.slots.update(0)
        self.steps = context.metrics.histogram("step_time", buckets=(1, 2))
        self.reads = context.metrics.histogram("read_time", "s", ("disk",), buckets=(1, 2))

    def inference(self, inputs):
        self.tokens.update(3, kind="prompt")
        self.slots.update(len(inputs))
        self.steps.update(1.5)
        self.reads.merge([1, 0, 1], 3.5, disk="a")
        metrics = self.context.metrics
        metrics.add_counter("Calls", 1)
        metrics.add_time("Work", 2.5)
        metrics.add_size("Weights", 7)
        metrics.add_percent("Fill", 50)
        metrics.add_error("Trouble", "none really")
        return ["emitted" for _ in inputs]
