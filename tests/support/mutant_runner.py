"""Runs the tests of one file of rules with one mutant after another: a process that loads once and forks for each.

`mutants.py` starts it with a file's path, its tests, and the places of the mutants on standard input, each with its
line. The process imports everything that the tests need and that does not depend on the file, and learns which tests
run which lines. Each child then imports the changed file and what depends on it, runs first the tests that run the
changed line and then, in another child, all others, and stops at the first that fails. JSON answers for each place.
"""

import ast
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

import pytest
from hypothesis import Phase, settings
from mutants import changed_tree

TOP: Final = Path(__file__).parents[2]
CPU_AT_LEAST_S: Final = 10
CPU_TIMES: Final = 5
"""How much more processor time a mutant may take than the file as it is: a loop without an end is seen."""
ANSWER_TIMEOUT_S: Final = 3600
MEMORY_AT_MOST: Final = 4 * 2**30
FIRST: Final = 40
"""So many tests that run a changed line are tried before all the others: to collect fewer takes less time."""
QUICK: Final = (
    *("-q", "-x", "-s", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-p", "no:unraisableexception", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


class Withheld(BaseException):
    """The file under test, or what depends on it, is not loaded before it is changed."""


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module by `load`, and leaves all others to Python."""

    def __init__(self, path: str, load: Callable[[ModuleType], None]) -> None:
        self.path, self.load = TOP / path, load
        self.name = path.removesuffix(".py").replace("/", ".")

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        self.load(module)


class Watch:
    """A plugin of pytest: the tests in the order in which they are likely to fail, and which of them did."""

    def __init__(self, first: Sequence[str], took_s: dict[str, float], traced: Path | None) -> None:
        self.first = {name: place for place, name in enumerate(first)}
        self.took_s = took_s
        self.traced = str(traced) if traced else ""
        self.ran: dict[str, set[CodeType]] = {}
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Hypothesis tries the same examples each time, and shows no smaller one when it found one."""
        usual = settings.get_profile("feltd")
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", usual, derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda one: (self.first.get(one.nodeid, len(self.first)), self.took_s.get(one.nodeid, 0)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Note the functions of the traced file that each test runs."""
        ran = self.ran[item.nodeid] = set()

        def called(frame: FrameType, *_: object) -> None:
            if frame.f_code.co_filename == self.traced:
                ran.add(frame.f_code)

        if self.traced:
            sys.settrace(called)
        try:
            return (yield)
        finally:
            sys.settrace(None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.took_s[report.nodeid] = self.took_s.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed = report.nodeid


def in_child(work: Callable[[], dict[str, Any]], cpu_s: int) -> dict[str, Any] | None:
    """What `work` returns in a forked process; None if it came to no end within its time and memory."""
    read, write = os.pipe()
    if not (child := os.fork()):
        os.close(read)
        silent = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(silent, number)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_AT_MOST, MEMORY_AT_MOST))
        try:
            with os.fdopen(write, "w") as pipe:
                json.dump(work(), pipe)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        if not select.select([pipe], [], [], ANSWER_TIMEOUT_S)[0]:
            os.kill(child, signal.SIGKILL)
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer.endswith("}") else None


class Runner:
    """The tests of a file, and what is known of them."""

    def __init__(self, path: str, tests: Sequence[str]) -> None:
        self.path, self.tests = path, [str(TOP / one) for one in tests]
        self.source = (TOP / path).read_text()
        self.first: list[str] = []
        self.took_s: dict[str, float] = {}
        self.running: dict[int, list[str]] = {}

    def run(self, tree: ast.Module, tests: Sequence[str] = (), *, trace: bool = False) -> dict[str, Any]:
        """Run these tests, or all, with this text of the file, in this process."""
        watch = Watch(self.first, dict(self.took_s), TOP / self.path if trace else None)
        code = compile(tree, str(TOP / self.path), "exec")

        def load(module: ModuleType) -> None:
            exec(code, module.__dict__)

        sys.meta_path.insert(0, Finder(self.path, load))
        ended = pytest.main([*QUICK, f"--rootdir={TOP}", *(tests or self.tests)], plugins=[watch])
        cpu_s = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        return {
            "ended": ended,
            "failed": watch.failed,
            "took_s": watch.took_s,
            "loaded": list(sys.modules),
            "ran": {
                test: sorted({at for one in ran for *_, at in one.co_lines() if at}) for test, ran in watch.ran.items()
            },
            "cpu_s": cpu_s,
        }

    def prepare(self) -> int:
        """Load what does not depend on the file; the processor time that a mutant may take. The tests must pass."""
        tree = ast.parse(self.source)
        seen = in_child(lambda: self.run(tree, trace=True), 600) or {"loaded": [], "took_s": {}, "ran": {}}
        for test in sorted(seen["ran"], key=seen["took_s"].__getitem__):
            for line in seen["ran"][test]:
                self.running.setdefault(line, []).append(test.partition("[")[0])

        sys.meta_path.insert(0, withheld := Finder(self.path, withhold))
        for name in seen["loaded"]:
            if not name.rpartition(".")[2].startswith(("test_", "conftest", "__main__")):
                try:
                    importlib.import_module(name)
                except (Withheld, ImportError):
                    continue
        sys.meta_path.remove(withheld)
        for name in sorted(sys.modules):  # what was loaded of a package that the file keeps from loading
            parent = name.rpartition(".")[0]
            if parent.partition(".")[0] == "rules" and parent not in sys.modules:
                del sys.modules[name]
        gc.collect()
        gc.freeze()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        as_it_is = in_child(lambda: self.run(tree), 600)
        if as_it_is is None or as_it_is["ended"]:
            sys.exit(f"{self.path}: its tests fail without a change: {as_it_is and as_it_is['failed']}")
        self.took_s = as_it_is["took_s"]
        return int(before + max(CPU_AT_LEAST_S, CPU_TIMES * as_it_is["cpu_s"]))

    def kill(self, place: int, line: int, cpu_s: int) -> str:
        """The test that fails with this change of the file, or what else happened; "" if all pass."""
        tree = changed_tree(self.source, place)
        running = list(dict.fromkeys(self.running.get(line, ())))
        known = [test for test in dict.fromkeys(one.partition("[")[0] for one in self.first) if test in running]
        quick = list(dict.fromkeys((*known, *running)))[:FIRST]
        return (self._killer(tree, quick, cpu_s) if quick else "") or self._killer(tree, (), cpu_s)

    def _killer(self, tree: ast.Module, tests: Sequence[str], cpu_s: int) -> str:
        answer = in_child(lambda: self.run(tree, tests), cpu_s)
        if answer is None:
            return "no end"
        if failed := answer["failed"]:
            self.first = [failed, *(one for one in self.first if one != failed)]
        return failed or (f"pytest ended with {answer['ended']}" if answer["ended"] else "")


def withhold(_: ModuleType) -> None:
    """Load nothing."""
    raise Withheld


def main() -> None:
    """Answer for each place and line on standard input with a line: the place, and the test that failed."""
    path, *tests = sys.argv[1:]
    runner = Runner(path, tests)
    cpu_s = runner.prepare()
    for wanted in sys.stdin:
        place, line = map(int, wanted.split())
        sys.stdout.write(json.dumps([place, runner.kill(place, line, cpu_s)]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
