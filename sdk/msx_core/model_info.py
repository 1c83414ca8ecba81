"""The model version that a worker serves."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msx_core.framework_device import FrameworkDevice
from msx_core.sequences import SequenceKeys
from msx_core.servable_start import ServableStart
from msx_core.text_limits import DEFAULT_LIMITS, TextLimits


@dataclass(frozen=True)
class ModelInfo:
    """The constant part of a context: one model version on one rank."""

    model_name: str
    model_version: str = "1.0"
    model_dir: Path = Path()
    manifest: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    """The whole of model-config.yaml."""
    batch_size: int = 1
    device_id: int | None = None
    """Index of this rank's device among those that its process sees; None on a CPU."""
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    place: int = 0
    """Which of the version's workers it is, from 0."""
    cache_dir: Path | None = None
    """A folder for data of this model that outlives the process, such as compiled graphs."""
    decode_input: bool = True
    limit_max_image_pixels: bool = True
    server_version: str = ""
    sequence_keys: SequenceKeys = field(default_factory=SequenceKeys)
    text_limits: TextLimits = DEFAULT_LIMITS
    largest_body: int = 6553500
    """Bytes: the larger one of the server's max_request_size and max_response_size."""
    from_older_server: bool = False
    """The model was served before rows were compared at warm-up: where they differ it starts, with an ERROR."""
    servable: ServableStart | None = None
    """The servable as a start script of MindSpore Serving declares it; None for all other models."""
    framework_device: FrameworkDevice | None = None
    """MindSpore's name of the device; None where MindSpore computes on the CPU."""
    host_processes: int = 0
    """Processes of vLLM of all models that share this machine's processor; 0 where the worker has devices, or they are
    not known."""
