"""`--handler servable`: runs what a `servable_config.py` of MindSpore Serving declares."""
