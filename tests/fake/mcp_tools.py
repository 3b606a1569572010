"""A server of tools by the Model Context Protocol, made with the official package: as a process, or behind a URL.

python -m tests.fake.mcp_tools    # over standard input and output

`good_server(folder)` and `hostile_server(folder)` are the entries of this one and of `mcp_hostile`. What they do they
note in files of the folder, for a test to read.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import EmbeddedResource, ResourceLink, TextContent, TextResourceContents, ToolAnnotations
from pydantic import BaseModel, Field

from graph.mcp.config import ServerConfig
from tests.fake.picture import picture as drawn

# That of `served_app` comes with the whole product, which each start of this server would wait for.
_ROOT: Final = Path(__file__).parents[2]
SECRET: Final = "hush-4f9c1e77aa"  # noqa: S105  # of no service
_END_SECONDS: Final = 60.0
_FOLDER: Final = "MCP_TOOLS_FOLDER"


def entry_of(folder: Path, module: str = "mcp_tools") -> dict[str, Any]:
    """Returns a server's entry in the file of `MCP_SERVERS`."""
    return {
        "command": sys.executable,
        "args": ["-m", f"tests.fake.{module}"],
        "env": {"API_KEY": SECRET, _FOLDER: str(folder), "PYTHONPATH": str(_ROOT)},
    }


def good_server(folder: Path, name: str = "notes") -> ServerConfig:
    return _config(name, entry_of(folder))


def hostile_server(folder: Path, name: str = "wild") -> ServerConfig:
    return _config(name, entry_of(folder, "mcp_hostile"))


def _config(name: str, entry: Mapping[str, Any]) -> ServerConfig:
    return ServerConfig(name, entry["command"], tuple(entry["args"]), entry["env"])


@contextmanager
def served_by_url(folder: Path, port: int) -> Iterator[None]:
    """Serves the good tools by streamable HTTP, in a thread, on a port of 127.0.0.1 at /mcp."""
    app = server_of(folder).streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    listening = socket.create_server(("127.0.0.1", port))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        thread.join(_END_SECONDS)
        listening.close()
        assert not thread.is_alive()


def noted(folder: Path, name: str) -> list[str]:
    """Returns the lines that a server noted under a name."""
    path = folder / f"{name}.txt"
    return path.read_text("utf-8").splitlines() if path.exists() else []


class _Answer(BaseModel):
    name: str


def server_of(folder: Path) -> MCPServer[Any]:  # noqa: C901 - one function a tool
    server: MCPServer[Any] = MCPServer("notes")
    reads = ToolAnnotations(read_only_hint=True)

    def note(name: str, line: object) -> None:
        with (folder / f"{name}.txt").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    note("started", os.getpid())

    @server.tool(title="Look up", annotations=reads, structured_output=False)
    def look(subject: Annotated[str, Field(description="What to look up.")]) -> str:
        """Reads what is noted of a subject."""
        note("look", subject)
        return f"{subject}: 서울 R-4711, /srv/data/budget.csv"

    @server.tool(structured_output=False)
    def write_note(text: str) -> str:
        """Writes a note."""
        note("notes", text)
        return f"noted: {text}"

    @server.tool(annotations=reads)
    def picture() -> Image:
        """Draws a picture."""
        return Image(data=drawn("PNG"), format="png")

    @server.tool(annotations=reads)
    def structured(city: str) -> dict[str, Any]:
        """Tells the weather."""
        return {"city": city, "degrees": 21}

    @server.tool(annotations=reads, structured_output=False)
    def resource() -> list[Any]:
        """Returns a file and a link."""
        return [
            TextContent(type="text", text="two parts"),
            EmbeddedResource(
                type="resource", resource=TextResourceContents(uri="file:///a/log.txt", text="line 1\nline 2")
            ),
            ResourceLink(type="resource_link", uri="https://example.com/report", name="report"),
        ]

    @server.tool(annotations=reads, structured_output=False)
    async def slow(steps: int, seconds: float, ctx: Context[Any, Any]) -> str:
        """Takes its time and tells how far it is."""
        note("slow", "began")
        try:
            for step in range(steps):
                await ctx.report_progress(step, steps, f"step {step + 1} of {steps} with {SECRET}")
                await anyio.sleep(seconds)
        except anyio.get_cancelled_exc_class():
            note("slow", "cancelled")
            raise
        return "at last"

    @server.tool(annotations=reads, structured_output=False)
    def failing() -> str:
        """Fails."""
        msg = f"no such note, asked with {SECRET}"
        raise ValueError(msg)

    @server.tool(structured_output=False)
    async def ask_back(ctx: Context[Any, Any]) -> str:
        """Asks the user."""
        answer = await ctx.elicit("Your password?", _Answer)
        return str(answer)

    return server


if __name__ == "__main__":
    server_of(Path(os.environ[_FOLDER])).run()
