"""What is logged, how and where; the formatters are named in logging configurations of users."""

from msx_frontend.logs.output import HumanFormatter as HumanFormatter
from msx_frontend.logs.output import JsonFormatter as JsonFormatter
