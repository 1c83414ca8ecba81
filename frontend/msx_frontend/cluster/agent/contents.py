"""The folders on this node that ranks need."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import platformdirs

from msx_frontend.cluster.agent_messages import Content

CACHE = "MSX_NODE_CACHE"


def node_cache() -> Path:
    """Where this node keeps what it fetches: `MSX_NODE_CACHE`, else a folder of the user's cache."""
    return Path(os.environ.get(CACHE) or platformdirs.user_cache_path("msx-serve"))


async def folder_of(content: Content, dial: Callable[..., Awaitable[Any]], progress: Callable[[str], None]) -> str:
    """The folder with this content on this node. Raises OSError with a sentence."""
    if not os.path.isdir(content.path):
        raise FileNotFoundError(f"{content.path} is not on this node")
    return content.path
