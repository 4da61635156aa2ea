"""Every page of the console, found from its routes: for the look with axe and for the pictures.

A page that is new is looked at without anybody naming it. A route with a new place in braces needs an example here.
"""

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import httpx
from console_floor import opened
from floor import Served
from starlette.routing import Route

# Routes that answer 200 on a running site only under conditions that no example makes.
NOT_ALWAYS = ("/bundle", "/reports.csv", "/tables/draft/{id}")
STRANGER = ""
Examples = Mapping[str, Sequence[str]]
# Places whose values are the same on every site.
GIVEN: Examples = {"kind": ["csv"], "path": ["console.css"], "act": ["add"], "id": ["0"]}


def routes() -> list[str]:
    """The path of every route that answers GET, with its places in braces."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), "styleguide = true") as console:
        found = [one for one in console.app.routes if isinstance(one, Route)]
        return [one.path for one in found if "GET" in (one.methods or ())]


def paths(route: str, examples: Examples) -> list[str]:
    """The route with each of the examples; those of several places go together, the shortest list says how many."""
    places = re.findall(r"{(\w+)(?::\w+)?}", route)
    if not places:
        return [route]
    missing = [f"{{{name}}}" for name in places if name not in examples]
    assert not missing, f"{route}: give an example of {', '.join(missing)} to tests/support/every_page.py"
    found = []
    for values in zip(*(examples[name] for name in places), strict=False):
        path = route
        for name, value in zip(places, values, strict=True):
            path = re.sub(rf"{{{name}(:\w+)?}}", value, path)
        found.append(path)
    return found


class Pages:
    """The pages of a served console as each of its people gets them."""

    def __init__(self, floor: Served, people: Iterable[str], examples: Examples) -> None:
        secrets = {STRANGER: "", **{name: floor.secret(name) for name in people}}
        self._browsers = {
            name: httpx.Client(
                base_url=floor.url, cookies={"feltd": secret} if secret else {}, timeout=60, verify=False
            )
            for name, secret in secrets.items()
        }
        self._examples = {**GIVEN, **examples}

    def of(self, name: str, path: str) -> bool | None:
        """Whether somebody (STRANGER: nobody) is answered with a page; None for an answer that is no page, and for the
        way to another page.
        """
        with self._browsers[name].stream("GET", path) as answer:
            if answer.is_redirect and not answer.headers["location"].startswith("/login"):
                return None
            if answer.status_code != httpx.codes.OK:
                return False
            return True if answer.headers.get("content-type", "").startswith("text/html") else None

    def seen(self, asked: Iterable[str] = ()) -> dict[str, list[tuple[str, str]]]:
        """By route, who sees which of its pages. Every route must have been seen by somebody."""
        found: dict[str, list[tuple[str, str]]] = {}
        for route in asked or routes():
            answers = {
                (name, path): self.of(name, path) for path in paths(route, self._examples) for name in self._browsers
            }
            seen = [who for who, answer in answers.items() if answer]
            if seen:
                found[route] = seen
            elif not any(answer is None for answer in answers.values()) and route not in NOT_ALWAYS:
                raise AssertionError(f"{route}: nobody is shown it, as any of {sorted({path for _, path in answers})}")
        return found
