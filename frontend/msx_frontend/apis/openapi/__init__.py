"""The OpenAPI document of a listener: /openapi.json."""
