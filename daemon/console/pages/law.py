"""The texts of the law: each article that a page or a report names leads here."""

from itertools import groupby

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console.articles import paragraphs, proofs_of, text_of
from daemon.console.context import ConsoleContext
from daemon.console.games import GAMES

__all__ = ["routes"]


def routes(context: ConsoleContext) -> list[Route]:
    """The list of the texts, and the page of one."""
    pages = _Pages(context)
    return [Route("/law", pages.all), Route("/law/{ruleset}", pages.one)]


class _Pages:
    def __init__(self, context: ConsoleContext) -> None:
        self._context = context

    async def all(self, request: Request) -> Response:
        self._context.needs(request, "look")
        texts = [(ruleset, text) for ruleset in GAMES if (text := text_of(ruleset)) is not None]
        laws = groupby(texts, key=lambda one: one[0].partition(".")[0])
        return self._context.page(request, "law_all.html", laws=[(law, list(some)) for law, some in laws])

    async def one(self, request: Request) -> Response:
        self._context.needs(request, "look")
        ruleset: str = request.path_params["ruleset"]
        text = text_of(ruleset) if ruleset in GAMES else None
        if text is None:
            raise HTTPException(404)
        proofs = proofs_of(ruleset)
        editions = [(one, paragraphs(text, one.edition, proofs)) for one in text.publication]
        return self._context.page(request, "law.html", ruleset=ruleset, editions=editions)
