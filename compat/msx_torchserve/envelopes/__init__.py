"""The envelopes that TorchServe's `service_envelope` names."""
