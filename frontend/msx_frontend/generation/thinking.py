"""Whether a model thinks before it answers: a variable of its chat template."""

from msx_core.generation import Capabilities

VARIABLES = ("enable_thinking", "thinking")
"""The names that templates have for it."""


def thinking_values(thinks: bool, offered: Capabilities) -> dict[str, bool]:
    """The variables that the model's template reads."""
    return {name: thinks for name in VARIABLES if name in (offered.template_variables or ())}
