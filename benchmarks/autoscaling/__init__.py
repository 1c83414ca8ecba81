"""Workers that follow the load, in virtual time."""
