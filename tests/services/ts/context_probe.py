"""Answers with all that a TorchServe handler may ask its context for."""

from ts.torch_handler.base_handler import BaseHandler


class ContextProbe(BaseHandler):
    def initialize(self, context):
        self.constant = {
            "model_name": context.model_name,
            "manifest": context.manifest["model"],
            "system_properties": dict(context.system_properties),
            "model_yaml_config": context.model_yaml_config,
            "stopping_criteria": context.stopping_criteria,
            "cache": context.cache,
            "sequence": [
                context.header_key_sequence_id,
                context.header_key_sequence_start,
                context.header_key_sequence_end,
            ],
            "metrics": type(context.metrics).__name__,
            "cl_socket": context.cl_socket,
        }
        self.initialized = True

    def handle(self, data, context):
        return [self.answer(idx, context) for idx in range(len(data))]

    def answer(self, idx, context):
        processor = context.request_processor[idx]
        context.set_response_content_type(idx, "application/json; charset=utf-8")
        context.set_response_header(idx, "X-Set", "by the context")
        processor.add_response_property("X-Added", "by the processor")
        if status := context.get_request_header(idx, "X-Status"):
            context.set_response_status(int(status), "Chosen", idx)
        if status := context.get_request_header(idx, "X-Report"):
            processor.report_status(int(status), "Reported")
        if status := context.get_request_header(idx, "X-All"):
            context.set_all_response_status(int(status), "All")
        return {
            **self.constant,
            "request_ids": context.request_ids,
            "get_request_id": [context.get_request_id(), context.get_request_id(idx)],
            "header": context.get_request_header(idx, "X-Probe"),
            "no_header": context.get_request_header(idx, "X-Absent"),
            "body_header": context.get_request_header(idx, "body"),
            "all_headers": context.get_all_request_header(idx),
            "sequence_id": context.get_sequence_id(idx),
            "content_type": context.get_response_content_type(idx),
            "response_headers": context.get_response_headers(idx),
            "response_status": context.get_response_status(idx),
            "property": processor.get_request_property("X-Probe"),
            "properties": processor.get_request_properties(),
            "processor_status": [processor.get_response_status_code(), processor.get_response_status_phrase()],
            "processor_header": [processor.get_response_header("X-Added"), processor.get_response_header("X-Absent")],
            "processor_headers": processor.get_response_headers(),
        }
