"""A server of tools by the Model Context Protocol, as a process, made with the official package.

python -m tests.fake.mcp_tools           # over standard input and output
python -m tests.fake.mcp_tools 18080     # by streamable HTTP on that port of loopback, at /mcp

`good_server(folder)` and `hostile_server(folder)` are the entries of this one and of `mcp_hostile`. What
they do they note in files of the folder, for a test to read.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import EmbeddedResource, ResourceLink, TextContent, TextResourceContents, ToolAnnotations
from pydantic import BaseModel, Field

from graph.mcp.config import ServerConfig
from tests.fake.picture import picture as drawn
from tests.fake.port import free_port, wait_for_port
from tests.fake.served_app import ROOT

SECRET: Final = "hush-4f9c1e77aa"  # noqa: S105  # of no service
_FOLDER: Final = "MCP_TOOLS_FOLDER"


def entry_of(folder: Path, module: str = "mcp_tools") -> dict[str, Any]:
    """Returns a server's entry in the file of `MCP_SERVERS`."""
    return {
        "command": sys.executable,
        "args": ["-m", f"tests.fake.{module}"],
        "env": {"API_KEY": SECRET, _FOLDER: str(folder), "PYTHONPATH": str(ROOT)},
    }


def good_server(folder: Path, name: str = "notes") -> ServerConfig:
    return _config(name, entry_of(folder))


def hostile_server(folder: Path, name: str = "wild") -> ServerConfig:
    return _config(name, entry_of(folder, "mcp_hostile"))


def _config(name: str, entry: Mapping[str, Any]) -> ServerConfig:
    return ServerConfig(name, entry["command"], tuple(entry["args"]), entry["env"])


@contextmanager
def served_by_url(folder: Path, port: int = 0) -> Iterator[str]:
    """Serves the good tools by streamable HTTP; yields the URL."""
    port = port or free_port()
    entry, log = entry_of(folder), folder / "http.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [entry["command"], *entry["args"], str(port)], env=os.environ | entry["env"], stdout=output, stderr=output
        )
    try:
        wait_for_port(port, process, log)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def noted(folder: Path, name: str) -> list[str]:
    """Returns the lines that a server noted under a name."""
    path = folder / f"{name}.txt"
    return path.read_text("utf-8").splitlines() if path.exists() else []


def _note(name: str, line: object) -> None:
    with (Path(os.environ[_FOLDER]) / f"{name}.txt").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


class _Answer(BaseModel):
    name: str


def _serve(port: int | None) -> None:  # noqa: C901 - one function a tool
    server: MCPServer[Any] = MCPServer("notes")
    reads = ToolAnnotations(read_only_hint=True)
    _note("started", os.getpid())

    @server.tool(title="Look up", annotations=reads, structured_output=False)
    def look(subject: Annotated[str, Field(description="What to look up.")]) -> str:
        """Reads what is noted of a subject."""
        _note("look", subject)
        return f"{subject}: 서울 R-4711, /srv/data/budget.csv"

    @server.tool(structured_output=False)
    def write_note(text: str) -> str:
        """Writes a note."""
        _note("notes", text)
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
        _note("slow", "began")
        try:
            for step in range(steps):
                await ctx.report_progress(step, steps, f"step {step + 1} of {steps} with {SECRET}")
                await anyio.sleep(seconds)
        except anyio.get_cancelled_exc_class():
            _note("slow", "cancelled")
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

    if port is None:
        server.run()
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)


if __name__ == "__main__":
    _serve(int(sys.argv[1]) if sys.argv[1:] else None)
