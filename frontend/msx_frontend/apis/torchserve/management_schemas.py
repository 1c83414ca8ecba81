"""JSON schemas of TorchServe's management replies, for /openapi.json."""

from msx_net.http.family import JsonSchema

MODELS: JsonSchema = {
    "type": "object",
    "required": ["models"],
    "properties": {
        "models": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["modelName", "modelUrl"],
                "properties": {"modelName": {"type": "string"}, "modelUrl": {"type": "string"}},
            },
        },
        "nextPageToken": {"type": "string", "description": "For next_page_token, where there are more"},
    },
}
_DEVICE: JsonSchema = {
    "type": "object",
    "required": ["device", "id", "name"],
    "properties": {
        "device": {"type": "integer", "description": "The server's number of it"},
        "id": {"type": "string", "description": "The driver's name of it"},
        "name": {"type": "string"},
        "cores": {"type": "string", "description": "Those of its NUMA node"},
        "utilization": {"type": "integer", "description": "In percent"},
        "memoryUsed": {"type": "integer", "description": "In bytes"},
        "memoryTotal": {"type": "integer", "description": "In bytes"},
        "temperature": {"type": "integer", "description": "In °C"},
        "workerMemory": {"type": "integer", "description": "In bytes, of the worker's processes"},
    },
}
_WORKER: JsonSchema = {
    "type": "object",
    "required": ["id", "status"],
    "properties": {
        "id": {"type": "string"},
        "status": {"type": "string"},
        "startTime": {"type": "string"},
        "pid": {"type": "integer"},
        "memoryUsage": {"type": "integer", "description": "In bytes"},
        "gpu": {"type": "boolean"},
        "gpuUsage": {"type": "string"},
        "deviceUsage": {"type": "array", "items": _DEVICE},
    },
}
_OVERLAP: JsonSchema = {
    "type": "object",
    "description": "Whether preprocess and postprocess of other batches run beside inference",
    "required": ["enabled"],
    "properties": {
        "enabled": {"type": "boolean"},
        "reason": {"type": "string", "description": "Why batches run one after the other"},
    },
}
_VERSION: JsonSchema = {
    "type": "object",
    "required": ["modelName", "modelVersion", "workers"],
    "properties": {
        "modelName": {"type": "string"},
        "modelVersion": {"type": "string"},
        "modelUrl": {"type": "string"},
        "minWorkers": {"type": "integer"},
        "maxWorkers": {"type": "integer"},
        "batchSize": {"type": "integer"},
        "maxBatchDelay": {"type": "integer", "description": "In milliseconds"},
        "state": {"type": "string"},
        "reason": {"type": "string"},
        "overlap": _OVERLAP,
        "workers": {"type": "array", "items": _WORKER},
    },
}
DESCRIBED: JsonSchema = {
    "type": "array",
    "description": "An object a version. It has more members than these: docs/management.md",
    "items": _VERSION,
}
READY: JsonSchema = {
    "type": "object",
    "required": ["name", "ready"],
    "properties": {"name": {"type": "string"}, "ready": {"type": "boolean"}},
}
