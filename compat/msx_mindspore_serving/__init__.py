"""MindSpore Serving's package for users, its workers' handler and its API."""
