"""Ways in which the playground can ask a model."""

from msx_frontend.models.versions.model_version import ModelVersion

PREDICT, CHAT, EMBED = "predict", "chat", "embed"


def ways_of(version: ModelVersion) -> tuple[str, ...]:
    """The best first. All of them until the first worker has loaded the handler: a request may be what loads it."""
    offered = version.schema.capabilities
    if offered is None:
        return (PREDICT, CHAT, EMBED)
    chat = (CHAT,) if offered.generate and offered.chat else ()
    embed = (EMBED,) if offered.embed else ()
    return (*chat, *embed, PREDICT)
