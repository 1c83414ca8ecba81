"""vLLM's engine behind the server's archives, routes and limits; nothing here needs MindSpore."""
