"""The envelopes that `service_envelope` names."""
