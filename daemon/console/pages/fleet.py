"""All computers of the site: one table, the worst first, live."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console.context import ConsoleContext
from daemon.console.live import Fragment, Viewer
from daemon.fleet import Process, fleet

__all__ = ["fragments", "routes"]

EVERY_S = 5.0
"""Seconds between two updates: each of a hundred computers sends its health twice a minute."""


def fragments(context: ConsoleContext) -> tuple[Fragment, ...]:
    """The table."""

    def render(argument: str, viewer: Viewer) -> str:
        if argument:
            raise KeyError(argument)
        processes = [
            Process(name, edge.current is True and context.site.connected, edge.info, edge.health)
            for name, edge in context.site.edges.items()
        ]
        return context.render("_fleet.html", viewer.lang, computers=fleet(processes, context.now()))

    return (Fragment("fleet", lambda _: ("broker", "edges"), render, plain=True, every=EVERY_S),)


def routes(context: ConsoleContext) -> list[Route]:
    """The page, for all who may look."""

    async def page(request: Request) -> Response:
        context.needs(request, "look")
        return context.page(request, "fleet.html")

    return [Route("/fleet", page)]
