"""No test leaves a task running."""

import asyncio
import inspect
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio


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
