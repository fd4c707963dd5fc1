"""A console in this process that follows no cluster, and its pages over a real socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lockstep_console.access import ConsoleAccess
from lockstep_console.changes import ChangeBroadcast
from lockstep_console.console import Console, ConsoleIdentity
from lockstep_console.flow_watches import FlowWatches
from lockstep_console.pages import handlers
from lockstep_console.static_files import StaticFiles
from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.http.server import GuardedServer


def idle_console(watches: FlowWatches, policy: AccessPolicy | None = None) -> Console:
    """Return a console of these flows. Without a policy everybody may read."""
    identity = ConsoleIdentity("c", Path("mm2.properties"))
    return Console(identity, watches, ConsoleAccess(policy or AccessPolicy()), ChangeBroadcast())


@asynccontextmanager
async def served(console: Console) -> AsyncIterator[str]:
    """Yield the address of a console's pages while they are open."""
    server = GuardedServer({}, routes=handlers(console, StaticFiles()))
    address = await server.open(console.access.policy)
    try:
        yield address
    finally:
        await server.close()
