"""The HTTP API: OpenAI-compatible and session routes over the same service as the page, with Starlette alone."""
