"""The server of a start script of MindSpore Serving: what the script asks it to do."""
