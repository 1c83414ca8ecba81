"""The worker process of one rank."""
