"""Style sheets, scripts and icons: read once at the start, sent from memory, and kept by browsers.

A page names them with a digest of their content (`/static/live.js?1f0c...`). An address with a digest may be
cached for a year; every other answer has `no-store`. These files hold no secret, so they are the only answers that are
compressed.
"""

import gzip
import hashlib
import mimetypes
import re
from pathlib import Path

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["VERSION", "route", "with_digests"]

KEPT = "max-age=31536000, immutable"
_NAMED = re.compile(r'"/static/([\w.-]+)"')


class _Asset(Struct, frozen=True):
    body: bytes
    packed: bytes
    kind: str
    digest: str


def _read(path: Path) -> _Asset:
    body = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return _Asset(body, gzip.compress(body, mtime=0), kind, hashlib.sha256(body).hexdigest()[:16])


_ASSETS = {path.name: _read(path) for path in sorted((Path(__file__).parent / "static").iterdir()) if path.is_file()}


def _version() -> str:
    """A digest of the pages' assets, templates and words."""
    here = Path(__file__).parent
    found = hashlib.sha256()
    for path in sorted((*here.glob("static/*"), *here.glob("templates/*"), *(here.parent / "words").rglob("*.toml"))):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


VERSION = _version()
"""The version of the pages. An open page of another version reloads when nothing is typed on it."""


def with_digests(source: str) -> str:
    """The source of a template, with digests behind the addresses of its assets. Raises KeyError for an unknown one."""
    return _NAMED.sub(lambda found: f'"/static/{found[1]}?{_ASSETS[found[1]].digest}"', source)


async def _send(request: Request) -> Response:
    """An asset. Raises 404."""
    asset = _ASSETS.get(request.path_params["path"])
    if asset is None:
        raise HTTPException(404)
    headers = {"vary": "accept-encoding"}
    if request.url.query == asset.digest:
        headers["cache-control"] = KEPT
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(asset.body, headers=headers, media_type=asset.kind)
    return Response(asset.packed, headers=headers | {"content-encoding": "gzip"}, media_type=asset.kind)


route = Route("/static/{path:path}", _send)
