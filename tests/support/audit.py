"""The pinned libraries of production against the known vulnerabilities of the package index, by pip-audit.

`python tests/support/audit.py PIP_AUDIT REQUIREMENTS…` ends with 1 if one has a vulnerability. An index that holds
packages alone cannot be asked: this is told, and is no failure.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["judged"]


def judged(report: dict[str, Any]) -> tuple[int, list[str]]:
    """The exit code and the lines for one report of pip-audit, as JSON."""
    libraries = report["dependencies"]
    bad = [
        f"{one['name']} {one['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'no version'}"
        for one in libraries
        for fault in one.get("vulns", ())
    ]
    unknown = [one["name"] for one in libraries if "skip_reason" in one]
    known = len(libraries) - len(unknown)
    if not known:
        return 0, ["skipped: the package index of this computer knows no vulnerabilities; ask the public one"]
    lines = [*bad, *(f"not known to the index: {name}" for name in unknown)]
    return (1 if bad else 0), [*lines, f"{known} libraries examined, {len(bad)} vulnerabilities"]


def main(program: str, files: Sequence[str]) -> int:
    worst = 0
    for file in files:
        done = subprocess.run(
            [program, "--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner", "off", "-r", file],
            capture_output=True,
            check=False,
        )
        try:
            code, lines = judged(json.loads(done.stdout))
        except ValueError:  # it could not ask at all
            words = done.stderr.decode(errors="replace").strip().splitlines()
            code, lines = 0, [f"skipped: {words[-1] if words else f'pip-audit ended with {done.returncode}'}"]
        worst = max(worst, code)
        sys.stdout.writelines(f"{file}: {line}\n" for line in lines)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
