"""TorchServe's snapshots: configuration and models as properties, for its tools and to move a server."""
