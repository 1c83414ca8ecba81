"""Start of a language model by a script of llm-serving."""

from .agent_multi_post_method import startup_agents

__all__ = ["startup_agents"]
