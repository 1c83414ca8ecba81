"""Servables of MindSpore Serving: the worker's part."""
