"""Cannot be loaded."""

from msx_sdk import Handler


class RaisesInInit(Handler):
    def initialize(self, context):
        raise FileNotFoundError(f"{context.model_dir}/weights.ckpt is not in the archive")
