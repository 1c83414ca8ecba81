"""`startup_agents`, by the name that start scripts of 2023 import."""

from mindspore_serving.agent.agent_multi_post_method import startup_agents  # type: ignore[import-untyped]

__all__ = ["startup_agents"]
