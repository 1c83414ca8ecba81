"""Plugins: endpoints and snapshot back ends of installed packages, by their entry points."""
