"""The messages and services of MindSpore Serving."""
