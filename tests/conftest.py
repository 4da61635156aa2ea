"""No test leaves a task running, none waits for a disk."""

import asyncio
import gc
import inspect
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import jinja2
import pytest
import pytest_asyncio
import structlog
from helpers import PATIENCE, at_length
from hypothesis import HealthCheck, settings

# A disk in memory. Its durable writes cost nothing; no test can show that those of a disk are durable.
MEMORY = Path("/dev/shm")
ROOM = 2 * 10**9


def pytest_configure() -> None:
    """Files of tests and of what they start go there, where there is room and nobody chose a place.

    Bytecode is kept whatever the environment says: a hundred processes are started here, half a second each to compile.
    """
    # How long an example takes says how busy the computer is. What asks for no number of examples gets this one.
    settings.register_profile(
        "feltd", deadline=None, max_examples=at_length(40, 400), suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("feltd")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: some test always waits for a terminal, a browser or a process that was killed."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_finish() -> None:
    """The tests and what they import are no garbage: tests that look for some look at their own only."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Hypothesis looks for the owners of what it is given, when it is imported for its last words."""
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="session")
def small_log() -> Iterator[None]:
    """Journals are opened by the thousand: without sixteen megabytes of zeros each time. Processes have theirs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daemon.journal.store._WAL_PAGES", 64)
        yield


@pytest.fixture(autouse=True, scope="session")
def a_busy_computer_may_answer_late() -> Iterator[None]:
    """A broker and a TCP port of the test itself are waited for like everything else; some tests set shorter limits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daemon.broker.mqtt5_session.ANSWER_TIMEOUT_S", PATIENCE)
        patch.setattr("daemon.broker.mqtt311_session.ANSWER_TIMEOUT_S", PATIENCE)
        patch.setattr("daemon.edge.links.link.CONNECT_TIMEOUT", PATIENCE)
        yield


@pytest.fixture(autouse=True, scope="session")
def no_command_slows_the_tests_behind_it() -> Iterator[None]:
    """`feltd journal verify` lowers the priority of its process, which is that of the tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daemon.cli.common.os.setpriority", lambda *_: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def pages_are_compiled_once() -> Iterator[None]:
    """Each console compiles its templates: a fifth of all that the tests of its pages cost."""
    compiled: dict[tuple[str, str | None], CodeType] = {}
    compiling = jinja2.Environment.compile

    def once(environment: jinja2.Environment, source: str, name: str | None = None, *more: Any) -> CodeType:
        if (source, name) not in compiled:
            compiled[source, name] = compiling(environment, source, name, *more)
        return compiled[source, name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jinja2.Environment, "compile", once)
        yield


@pytest.fixture(autouse=True)
def logs_are_left_as_they_were() -> Iterator[None]:
    """A test that runs a command sets up its logs; the next one must not miss a line for it."""
    before = structlog.get_config()
    yield
    if structlog.get_config() != before:
        structlog.configure(**before)


@pytest_asyncio.fixture
async def no_task_is_left() -> AsyncIterator[None]:
    """Fail an async test that leaves a task behind."""
    yield
    left = {task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not task.done()}
    assert not left, f"tasks left running: {left}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every async test is watched. The longest come first, so that workers beside each other end together."""
    items.sort(key=lambda item: item.path.name != "test_system.py")
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.fixturenames.insert(0, "no_task_is_left")
