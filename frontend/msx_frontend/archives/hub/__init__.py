"""Models of hubs and object stores: `hf://`, `modelscope://`, `s3://`, `obs://`."""
