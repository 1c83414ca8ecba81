"""Reports metrics by every call that TorchServe's handlers have."""

from ts.metrics.dimension import Dimension
from ts.metrics.metric_cache_errors import MetricsCacheKeyError
from ts.metrics.metric_type_enum import MetricTypes
from ts.torch_handler.base_handler import BaseHandler


class Measuring(BaseHandler):
    def initialize(self, context):
        self.cached = context.metrics.add_metric_to_cache("Cached", "count", ["kind"], MetricTypes.HISTOGRAM)

    def preprocess(self, data):
        return data

    def inference(self, data, *args, **kwargs):
        metrics = self.context.metrics
        metrics.add_counter("Counter", 2, 0)
        metrics.add_counter("Counter", -5)
        metrics.add_time("Time", 3, None, "s", [Dimension("step", "one")])
        metrics.add_size("Size", 4, unit="GB")
        metrics.add_percent("Percent", 5)
        metrics.add_error("Error", "odd")
        metrics.add_metric("Metric", 6, "tokens", metric_type=MetricTypes.GAUGE)
        self.cached.add_or_update(7, ["a"])
        self.cached.add_or_update(7, ["too", "many"])
        self.cached.update(8, "request", [Dimension("kind", "b")])
        assert metrics.get_metric("Cached", MetricTypes.HISTOGRAM) is self.cached
        try:
            metrics.get_metric("Absent")
        except MetricsCacheKeyError:
            return [row["body"] for row in data]

    def postprocess(self, data):
        return data
