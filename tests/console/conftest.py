"""For the tests that look at pages with a browser: each file has a `floor` of its own."""

from collections.abc import Iterator

import pytest
from floor import Browser, Served, browser


@pytest.fixture(scope="module")
def window(floor: Served) -> Iterator[Browser]:
    """One browser for many looks."""
    with browser(floor) as one:
        yield one


@pytest.fixture
def page(window: Browser) -> Iterator[Browser]:
    """It complains of nothing by itself: no script fails, nothing is missing, no policy is hurt."""
    window.complaints()
    yield window
    assert not window.complaints()
