"""Language models over HTTP: requests of OpenAI's, TGI's and KServe's APIs become jobs, and the deltas replies."""
