"""The public service: `open_service` yields a `ChatService` with its parts `turns`, `sessions`, `folds`, `projects`."""

from graph.service.chat_service import ChatService, open_service

__all__ = ["ChatService", "open_service"]
