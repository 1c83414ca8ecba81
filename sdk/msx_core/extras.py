"""Optional dependencies: a missing module becomes the command that installs it."""

EXTRAS = {
    "mindspore": ("mindspore", "numpy", "PIL", "safetensors", "tokenizers", "jinja2", "llguidance"),
    "torch": ("torch",),
}
"""The modules that each extra of pyproject.toml installs."""


def remedy(error: BaseException) -> str:
    """The end of an error message about a missing module that an extra installs; "" for other errors."""
    missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    extra = next((extra for extra, modules in EXTRAS.items() if missing in modules), None)
    return f'; it comes with the extra: pip install "msx-serve[{extra}]"' if extra else ""
