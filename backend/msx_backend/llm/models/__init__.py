"""Old names of the four modules that a family of language models imports: deprecated since 0.1, gone in 0.3."""

import sys
import warnings

from msx_llm.models import config, hub, members, neutral

for _module in (config, hub, members, neutral):
    sys.modules[_module.__name__.replace("msx_llm", __name__.removesuffix(".models"), 1)] = _module
warnings.warn(
    "msx_backend.llm.models is now msx_llm.models: import config, hub, members and neutral from there; the old name "
    "goes in 0.3.",
    DeprecationWarning,
    stacklevel=2,
)
