"""Whether a vendor's device speaks FDL as its page says: `feltd conform` plays the host rule by rule.

`rules` is what is asked, `host` the host's side of the line, `trial` the parts in their order. A rule of time is judged
only while this program itself was on time.

Called by: daemon/cli/conform.py.
May import: the codec of FDL, the drivers' lists of its events, and a link.
"""

from daemon.conformance.rules import ACTS, RULES, Act, EventKind, Finding, Hands, Report, Verdict
from daemon.conformance.trial import conform

__all__ = ["ACTS", "RULES", "Act", "EventKind", "Finding", "Hands", "Report", "Verdict", "conform"]
