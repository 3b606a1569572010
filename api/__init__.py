"""The door for programs: an OpenAI-compatible endpoint over the same service as the page; Starlette routes alone."""
