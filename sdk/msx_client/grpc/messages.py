"""The message classes of the services, made at run time in a descriptor pool of our own.

Other people's generated code has the same names in protobuf's default pool, which refuses a second definition.
`scripts/build-protos` makes services.binpb.
"""

from functools import lru_cache
from importlib import resources
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

INFERENCE = "org.pytorch.serve.grpc.inference"
MANAGEMENT = "org.pytorch.serve.grpc.management"


@lru_cache
def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    data = resources.files(__package__).joinpath("services.binpb").read_bytes()
    for file in FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


@lru_cache
def message(full_name: str) -> Any:
    """The class of a message."""
    return GetMessageClass(_pool().FindMessageTypeByName(full_name))
