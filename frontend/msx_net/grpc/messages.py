"""The message classes of protos/, made at run time in a descriptor pool of our own.

Clients and handlers load other people's generated code with the same names into protobuf's default pool, which
refuses a second definition. `scripts/build-protos` makes descriptors.binpb from the .proto files.
"""

from importlib import resources
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass


def _load() -> DescriptorPool:
    pool = DescriptorPool()
    data = resources.files(__package__).joinpath("descriptors.binpb").read_bytes()
    for file in FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


POOL = _load()


def message_class(full_name: str) -> Any:
    """The class of a message by its full name, such as `google.rpc.Status`. Raises KeyError."""
    return GetMessageClass(POOL.FindMessageTypeByName(full_name))
