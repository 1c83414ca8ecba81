"""As the function of TorchServe's dog-breed workflow: images to base64."""

import base64


def pre_processing(data, context):
    if data is None:
        return data
    return [base64.b64encode(row.get("data") or row.get("body")).decode() for row in data]
