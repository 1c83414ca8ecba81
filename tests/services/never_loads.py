"""Loads for ever."""

import threading

from msx_sdk import Handler


class NeverLoads(Handler):
    def initialize(self, context):
        threading.Event().wait()
