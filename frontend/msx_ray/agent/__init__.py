"""The process on a node that starts the ranks of its share, and ends them when the server is gone."""
