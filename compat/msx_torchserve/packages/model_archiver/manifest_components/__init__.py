"""`model_archiver.manifest_components`."""
