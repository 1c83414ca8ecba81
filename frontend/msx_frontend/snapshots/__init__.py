"""TorchServe's snapshots: the server's configuration and models as properties, for its tools and for a move."""
