"""The server: APIs, registry, queues, worker groups, devices."""

__version__ = "0.1.0"
