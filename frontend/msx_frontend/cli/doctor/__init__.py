"""`msx-serve doctor`: what of this machine keeps a server from running, and what to do about it."""
