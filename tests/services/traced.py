"""A handler with a span of its own, which fails when the body says so, and calls on with the trace's header."""

import logging

from msx_sdk import Handler, tracing

log = logging.getLogger("traced")


class Traced(Handler):
    def inference(self, inputs):
        with tracing.span("look up", rows=len(inputs)):
            log.info("looking up")
            with tracing.span("inner"):
                if inputs[0].get("body") == {"fail": True}:
                    raise RuntimeError("as asked")
            return [tracing.traceparent() or "none" for _ in inputs]
