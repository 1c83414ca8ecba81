"""The messages of MindSpore Serving's public service, made at run time from ms_service.binpb.

They live in a pool of their own: code that protoc made of the same file, anywhere in the process, does not meet them.
`scripts/build-protos` makes the file.
"""

from importlib import resources
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

_FILE = "mindspore_serving/proto/ms_service.proto"


def _load() -> Any:
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(
        resources.files(__package__).joinpath("ms_service.binpb").read_bytes()
    ).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool.FindFileByName(_FILE)


def _message(name: str) -> Any:
    return GetMessageClass(DESCRIPTOR.message_types_by_name[name])


DESCRIPTOR = _load()

PredictRequest = _message("PredictRequest")
PredictReply = _message("PredictReply")
ServableSpec = _message("ServableSpec")
Instance = _message("Instance")
ErrorMsg = _message("ErrorMsg")
Tensor = _message("Tensor")
TensorShape = _message("TensorShape")
TensorInfo = _message("TensorInfo")
ShmTensorData = _message("ShmTensorData")

DataType: Any = EnumTypeWrapper(DESCRIPTOR.enum_types_by_name["DataType"])
MS_UNKNOWN = 0
MS_BOOL = 1
MS_INT8 = 2
MS_UINT8 = 3
MS_INT16 = 4
MS_UINT16 = 5
MS_INT32 = 6
MS_UINT32 = 7
MS_INT64 = 8
MS_UINT64 = 9
MS_FLOAT16 = 10
MS_FLOAT32 = 11
MS_FLOAT64 = 12
MS_STRING = 13
MS_BYTES = 14
