"""Servables whose models have a part on each of several ranks."""

from __future__ import annotations

from .agents import startup_agents

__all__ = ["startup_agents"]
