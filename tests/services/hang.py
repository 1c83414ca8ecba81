"""Never answers. Appends a line to the file that the body names, then hangs."""

import threading

from msx_sdk import Handler


class Hang(Handler):
    def inference(self, inputs):
        with open(text(inputs[0]["body"]), "a") as file:
            file.write("hanging\n")
        threading.Event().wait()


def text(body):
    return body if isinstance(body, str) else body.decode()
