"""As TorchServe's example of custom metrics: all kinds, with and without a declaration, in each step of a handler."""

import time

from torchvision import transforms
from ts.metrics.dimension import Dimension
from ts.metrics.metric_type_enum import MetricTypes
from ts.torch_handler.image_classifier import ImageClassifier


class MeasuredClassifier(ImageClassifier):
    image_processing = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])

    def initialize(self, context):
        super().initialize(context)
        metrics = context.metrics
        self.requests = metrics.add_metric_to_cache(
            metric_name="InferenceRequestCount", unit="count", dimension_names=[], metric_type=MetricTypes.COUNTER
        )
        metrics.add_counter("InitializeCallCount", 1, None, [Dimension("ModelName", context.model_name)])

    def preprocess(self, data):
        metrics, started = self.context.metrics, time.perf_counter()
        counted = metrics.add_metric_to_cache("PreprocessCallCount", "count", ["ModelName"], MetricTypes.COUNTER)
        counted.add_or_update(1, [self.context.model_name])
        size = metrics.add_metric_to_cache(
            metric_name="RequestBatchSize", unit="count", dimension_names=["ModelName"], metric_type=MetricTypes.GAUGE
        )
        size.add_or_update(value=len(data), dimension_values=[self.context.model_name])
        for idx, row in enumerate(data):
            metrics.add_size("SizeOfImage", len(row["body"]) / 1024, idx, "kB")
        self.requests.add_or_update(len(data), [])
        images = super().preprocess(data)
        took = (time.perf_counter() - started) * 1000
        metrics.add_time("HandlerMethodTime", took, None, "ms", [Dimension("MethodName", "preprocess")])
        return images

    def postprocess(self, data):
        metrics = self.context.metrics
        metrics.add_counter("PostprocessCallCount", 1)
        metrics.add_percent("ExamplePercentMetric", 50, None, [], MetricTypes.HISTOGRAM)
        metrics.get_metric("PostprocessCallCount", MetricTypes.COUNTER).add_or_update(
            0, [self.context.model_name, "Model"]
        )
        metrics.add_error("Failures", 2)
        metrics.add_error("Failures", 3)
        return data.argmax(1).tolist()
