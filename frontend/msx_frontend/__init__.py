"""The server: APIs, registry, queues, worker groups, devices."""

__version__ = "0.2.0.dev0"
