"""The endpoints of workflows."""
