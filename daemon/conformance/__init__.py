"""Checks whether a vendor's device implements FDL as documented: `feltd conform` plays the host, rule by rule.

`rules` are the demands, `host` is the host's side of the line, `trial` has the parts in their order. A rule about time
is judged only if this program itself was on time.

Called by: daemon/cli/conform.py.
May import: the codec of FDL, the drivers' lists of its events, and a link.
"""

from daemon.conformance.rules import ACTS, RULES, Act, EventKind, Finding, Hands, Report, Verdict
from daemon.conformance.trial import conform

__all__ = ["ACTS", "RULES", "Act", "EventKind", "Finding", "Hands", "Report", "Verdict", "conform"]
