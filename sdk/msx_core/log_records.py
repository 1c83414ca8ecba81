"""Log records of the worker: one JSON object a line, after a record separator (RFC 7464).

The server reads them from the worker's stderr; what a handler prints arrives there as plain lines.
"""

import logging
import sys

import msgspec

from msx_core.batch import current_request_ids
from msx_core.failures import shortened
from msx_core.tracing.current import traced_requests

RECORD_SEPARATOR = "\x1e"
MAX_TEXT = 16_000
"""Characters of a message or a traceback: the server accepts records of 256 KiB, and a character may take 6 bytes."""


class RecordFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {"level": record.levelname, "logger": record.name, "message": shortened(record.getMessage(), MAX_TEXT)}
        if request_id := getattr(record, "request_id", "") or current_request_ids.get():
            entry["request_id"] = request_id
        if traced := traced_requests():
            entry["trace_id"] = traced[0].trace
        if record.exc_info:
            entry["traceback"] = shortened(self.formatException(record.exc_info), MAX_TEXT)
        return RECORD_SEPARATOR + _json(entry)


def _json(entry: dict[str, str]) -> str:
    try:
        return msgspec.json.encode(entry).decode()
    except UnicodeEncodeError:
        # A lone surrogate, from a path or a client.
        return _json({key: text.encode("utf-8", "backslashreplace").decode() for key, text in entry.items()})


def log_to_stderr(level: int = logging.INFO) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RecordFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
