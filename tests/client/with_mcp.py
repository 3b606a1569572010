"""The MCP client over streamable HTTP: each line is a tool's name and arguments, each answer what the tool returned."""

import asyncio
import os

import httpx2
from lines import converse
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL = os.environ["OPENAI_BASE_URL"].replace("/v1", "/mcp")
HEADERS = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}


async def call(name: str, arguments: dict[str, object]) -> str:
    async with (
        httpx2.AsyncClient(headers=HEADERS) as http,
        Client(streamable_http_client(URL, http_client=http)) as client,
    ):
        assert name in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool(name, arguments)
        assert not result.is_error, result.content
        return result.content[0].text


converse(lambda asked: asyncio.run(call(*asked)))
