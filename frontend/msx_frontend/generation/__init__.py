"""Language models over HTTP: from OpenAI's, TGI's and KServe's requests to jobs, from deltas to their replies."""
