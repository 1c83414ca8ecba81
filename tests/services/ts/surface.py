"""Imports what TorchServe's users import; answers with what is missing."""

import importlib
import sys

import ts

SURFACE = {
    "ts.context": "Context RequestProcessor",
    "ts.handler_utils.distributed.deepspeed": "get_ds_engine create_checkpoints_json",
    "ts.handler_utils.distributed.pt_pippy": "get_pipeline_driver get_pipline_driver initialize_rpc_workers",
    "ts.handler_utils.hf_batch_streamer": "TextIteratorStreamerBatch",
    "ts.handler_utils.micro_batching": "MicroBatching",
    "ts.handler_utils.text_utils": "get_tokenizer ngrams_iterator",
    "ts.handler_utils.timer": "timed",
    "ts.handler_utils.utils": "import_class send_intermediate_predict_response",
    "ts.launcher": "start stop register_model register_model_with_params",
    "ts.metrics.caching_metric": "CachingMetric",
    "ts.metrics.dimension": "Dimension",
    "ts.metrics.metric": "Metric",
    "ts.metrics.metric_abstract": "MetricAbstract",
    "ts.metrics.metric_cache_abstract": "MetricCacheAbstract",
    "ts.metrics.metric_cache_errors": "MetricsCacheKeyError MetricsCacheValueError MetricsCacheTypeError",
    "ts.metrics.metric_cache_yaml_impl": "MetricsCacheYamlImpl",
    "ts.metrics.metric_collector": "check_process_mem_usage system_metrics",
    "ts.metrics.metric_encoder": "MetricEncoder",
    "ts.metrics.metric_type_enum": "MetricTypes",
    "ts.metrics.metrics_store": "MetricsStore",
    "ts.metrics.process_memory_metric": "check_process_mem_usage get_cpu_usage",
    "ts.metrics.system_metrics": "collect_all cpu_utilization dimension disk_available disk_used disk_utilization "
    "gpu_utilization memory_available memory_used memory_utilization system_metrics",
    "ts.metrics.unit": "Units",
    "ts.protocol.otf_message_handler": "send_intermediate_predict_response",
    "ts.service": "PredictionException emit_metrics",
    "ts.torch_handler.base_handler": "BaseHandler ONNX_AVAILABLE PROFILER_AVAILABLE PT2_AVAILABLE",
    "ts.torch_handler.contractions": "CONTRACTION_MAP",
    "ts.torch_handler.dali_handler": "DALIHandler",
    "ts.torch_handler.dali_image_classifier": "DALIImageClassifier",
    "ts.torch_handler.densenet_handler": "DenseNetHandler",
    "ts.torch_handler.distributed.base_deepspeed_handler": "BaseDeepSpeedHandler",
    "ts.torch_handler.distributed.base_pippy_handler": "BasePippyHandler",
    "ts.torch_handler.image_classifier": "ImageClassifier",
    "ts.torch_handler.image_segmenter": "ImageSegmenter",
    "ts.torch_handler.object_detector": "ObjectDetector",
    "ts.torch_handler.request_envelope.base": "BaseEnvelope",
    "ts.torch_handler.request_envelope.body": "BodyEnvelope",
    "ts.torch_handler.request_envelope.json": "JSONEnvelope",
    "ts.torch_handler.request_envelope.kserve": "KServeEnvelope",
    "ts.torch_handler.request_envelope.kservev2": "KServev2Envelope",
    "ts.torch_handler.text_classifier": "TextClassifier",
    "ts.torch_handler.text_handler": "TextHandler",
    "ts.torch_handler.trt_llm_handler": "TRTLLMHandler",
    "ts.torch_handler.vision_handler": "VisionHandler",
    "ts.torch_handler.vllm_handler": "VLLMHandler",
    "ts.utils.hf_utils": "download_model",
    "ts.utils.timeit_decorator": "timeit",
    "ts.utils.util": "CLEANUP_REGEX PredictionException PT2Backend check_valid_pt2_backend get_yaml_config deprecated "
    "list_classes_from_module load_label_mapping map_class_to_label",
    "ts.version": "__version__",
}


def missing():
    for name, wanted in SURFACE.items():
        module = importlib.import_module(name)
        yield from (f"{name}.{attribute}" for attribute in wanted.split() if not hasattr(module, attribute))


def handle(data, context):
    if data is None:
        return None
    service, util = sys.modules["ts.service"], sys.modules["ts.utils.util"]
    protocol, utils = sys.modules["ts.protocol.otf_message_handler"], sys.modules["ts.handler_utils.utils"]
    told = {
        "version": ts.__version__,
        "missing": MISSING,
        "torch": "torch" in sys.modules,
        "of_service": service.PredictionException is util.PredictionException,
        "older_name": protocol.send_intermediate_predict_response is utils.send_intermediate_predict_response,
    }
    return [told] * len(data)


MISSING = list(missing())
