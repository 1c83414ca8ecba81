"""Logging: formats and files. Logging configurations of users name the formatters of this package."""

from msx_frontend.logs.output import HumanFormatter as HumanFormatter
from msx_frontend.logs.output import JsonFormatter as JsonFormatter
