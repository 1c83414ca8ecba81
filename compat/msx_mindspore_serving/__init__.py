"""What users of MindSpore Serving import, what its workers run and how its clients call."""
