"""Labels for the devices of a table, to print: a QR code opens the page of the device."""

import re

import segno
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console.context import ConsoleContext

__all__ = ["routes"]


def routes(context: ConsoleContext) -> list[Route]:
    """The page of each table."""

    async def labels(request: Request) -> Response:
        table: str = request.path_params["table"]
        context.needs(request, "look", table)
        if table not in context.site.tables:
            raise HTTPException(404)
        base = (context.config.console.url or str(request.base_url)).rstrip("/")
        devices = context.site.devices_of(table)
        addresses = [f"{base}/table/{table}/device/{device.name}" for device in devices]
        return context.page(
            request,
            "labels.html",
            table=table,
            labels=[(device, _parts(one), _drawn(one)) for device, one in zip(devices, addresses, strict=True)],
            base=base,
            configured=bool(context.config.console.url),
        )

    return [Route("/table/{table}/labels", labels)]


def _parts(address: str) -> list[str]:
    """The parts between which a line of the address may break: after a slash or a dot, but not within "https://"."""
    return re.findall(r"(?:\w+://)?[^/.]+[/.]?", address)


def _drawn(address: str) -> Markup:
    """The code as SVG, readable with up to 15 % damage."""
    code = segno.make(address, error="m", micro=False)
    drawn = code.svg_inline(border=4, omitsize=True, svgclass="qr", lineclass=None)
    return Markup(drawn)  # noqa: S704 - drawn here; the address is modules, not text
