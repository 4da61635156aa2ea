"""The pinned libraries of production against the known vulnerabilities of the package index, by pip-audit.

`python tests/support/audit.py PIP_AUDIT REQUIREMENTS…` ends with 1 if one has a vulnerability. An index that holds
packages alone cannot be asked: the last lines say loudly that nothing was audited, and it is no failure.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["NOTHING", "judged", "warning"]

NOTHING = "NOT AUDITED"


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
        return 0, [f"{NOTHING}: the package index of this computer knows no vulnerabilities"]
    lines = [*bad, *(f"not known to the index: {name}" for name in unknown)]
    return (1 if bad else 0), [*lines, f"{known} libraries examined, {len(bad)} vulnerabilities"]


def warning(files: Sequence[str]) -> list[str]:
    """What to print at the end where no index could say anything about `files`."""
    if not files:
        return []
    rule = "!" * 100
    names = ", ".join(files)
    return [rule, f"{NOTHING}: {names}.", "Run make audit on a computer that reaches the public package index.", rule]


def main(program: str, files: Sequence[str]) -> int:
    worst, skipped = 0, []
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
            code, lines = 0, [f"{NOTHING}: {words[-1] if words else f'pip-audit ended with {done.returncode}'}"]
        worst = max(worst, code)
        if lines[0].startswith(NOTHING):
            skipped.append(file)
        sys.stdout.writelines(f"{file}: {line}\n" for line in lines)
    sys.stdout.writelines(f"{line}\n" for line in warning(skipped))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
