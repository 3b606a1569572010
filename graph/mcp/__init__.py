"""Servers of tools by the Model Context Protocol, of which this is the client; `McpServers` has all of them."""

THREAD_NAME = "mcp-servers"
