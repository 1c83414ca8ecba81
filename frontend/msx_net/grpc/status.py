"""Which gRPC status a client sees for an error, where its service says nothing else."""

from msx_core.retry import retry_metadata
from msx_core.service_errors import ServiceError
from msx_net.grpc.codes import Code

LONGEST_MESSAGE = 2048
"""Bytes. Details travel as a header, three bytes for each byte that is not ASCII; clients take 8 KiB of headers."""


def standard_code(error: ServiceError) -> Code:
    return Code[error.grpc_code]


def metadata(error: ServiceError) -> list[tuple[str, str]]:
    """Metadata of an error: when to retry."""
    return retry_metadata(error.headers)


def sentence(error: ServiceError) -> str:
    """The message alone; one of more than LONGEST_MESSAGE bytes is cut."""
    return cut(error.plain)


def cut(text: str) -> str:
    """The text as far as it fits into details."""
    data = text.encode(errors="replace")
    return data.decode() if len(data) <= LONGEST_MESSAGE else data[:LONGEST_MESSAGE].decode(errors="ignore") + " …"
