"""A group on two nodes of a Ray cluster beside the same group on one machine."""
