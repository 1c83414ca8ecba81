"""Which extra brings a module: what is not installed becomes the line that installs it."""

from __future__ import annotations

EXTRAS = {
    "mindspore": ("mindspore", "numpy", "PIL", "safetensors", "tokenizers", "jinja2", "llguidance"),
    "torch": ("torch",),
}
"""The modules that handlers import, by the extra of pyproject.toml."""


def remedy(error: BaseException) -> str:
    """What follows the error's text, where a module is missing that an extra brings; else nothing."""
    missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    extra = next((extra for extra, modules in EXTRAS.items() if missing in modules), None)
    return f'; it comes with the extra: pip install "msx-serve[{extra}]"' if extra else ""
