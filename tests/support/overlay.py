"""A copy of the tree with a patch on it, and the project's own checks run in the copy.

tests/project/*.patch are a device and a game written from CONTRIBUTING.md alone; a test applies each and runs what a
new device or game must pass.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["Overlay"]

ROOT = Path(__file__).parents[2]
COPIED: tuple[str, ...] = (
    "daemon",
    "drivers",
    "protocols",
    "rules",
    "simulators",
    "systemd",
    "tests",
    "docs/reference",
    "README.md",
)
COPIED += ("CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml")


class Overlay:
    """The copy, in a folder that does not exist yet."""

    def __init__(self, patch: Path, folder: Path) -> None:
        """Raises CalledProcessError where the patch does not fit the tree: its stderr names the file."""
        self.folder = folder
        self.touched = re.findall(r"(?m)^\+\+\+ b/(.+)$", patch.read_text(encoding="utf-8"))
        """The files that the patch writes or changes."""
        ignored = shutil.ignore_patterns("__pycache__", "captures", "build", "*.egg-info")
        for name in COPIED:
            source, target = ROOT / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=ignored)
            else:
                shutil.copy(source, target)
        self._run("git", "apply", str(patch))

    def python(self, *words: str) -> str:
        """Run `python -m …` in the copy; what it prints. Raises CalledProcessError."""
        return self._run(sys.executable, "-m", *words)

    def tests(self, *words: str) -> int:
        """Run tests in the copy; how many passed. Raises AssertionError with the end of what pytest says."""
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *words],
            cwd=self.folder, env=self._environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        found = re.search(r"(\d+) passed", done.stdout)
        assert found is not None, done.stdout[-2000:]
        return int(found[1])

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.folder, env=self._environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """The copy's packages before those that are installed; no repository around it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GIT_"))}
        return kept | {"PYTHONPATH": f"{self.folder}:{self.folder}/tests/support", "GIT_CEILING_DIRECTORIES": "/"}
