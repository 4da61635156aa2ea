"""The streams of the backbone: their names, subjects, message ids and settings. Pure.

A message id is made of the journal that counted the row; that of a verdict is made of the journal that counted its
event, so that two writers of one verdict write one id. It also has a digest of its content: the stream keeps two that
differ, and readers receive both.
"""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from daemon.journal.rows import Row, id_and_journal
from protocols.contract.topics import ROOT, digest_of

__all__ = [
    "ADM",
    "EV",
    "LEAST_VERSION",
    "OWN_TOPICS",
    "REPLICAS",
    "RES",
    "STREAMS",
    "Stream",
    "id_of",
    "subject_of",
    "subject_of_pool",
]

EV: Final = "EV"
RES: Final = "RES"
ADM: Final = "ADM"
_WORDS: Final = {EV: "ev", RES: "res", ADM: "adm"}
REPLICAS: Final = 3
DUPLICATES_S: Final = 600.0
"""Seconds for which a stream keeps message ids. It only saves work: `seq` and the ledger's keys are the
guarantee.
"""
LEAST_VERSION: Final = (2, 12, 3)
OWN_TOPICS: Final = ROOT.partition("/")[0]
"""No stream may take subjects below it: the MQTT gateway would write everything twice, without ids and with gaps."""


class Stream(Struct, frozen=True):
    """The settings of a stream, which `feltd site init` makes and `feltd doctor` checks."""

    name: str
    subjects: tuple[str, ...]
    keep: timedelta


STREAMS: Final = (
    Stream(EV, (f"feltd.{_WORDS[EV]}.>",), timedelta(days=7)),
    Stream(RES, (f"feltd.{_WORDS[RES]}.>",), timedelta(days=90)),
    Stream(ADM, (f"feltd.{_WORDS[ADM]}.>",), timedelta(days=90)),
)


def subject_of(stream: str, site: str, place: str) -> str:
    """The subject of a table, or in ADM of an edge, rules or jackpots."""
    return f"feltd.{_WORDS[stream]}.{site}.{place}"


def subject_of_pool(site: str, pool: str) -> str:
    """The subject of the books of a jackpot, in RES: they follow from results and are kept as long."""
    return subject_of(RES, site, f"jackpot.{pool}")


def id_of(row: Row, journal: str, life: int = 0) -> str:
    """The message id of a row of `journal`; that of a verdict has the journal of its event and a digest of its content.

    Verdicts of early builds have none: the id names their own journal. `life`: how often the journal was put back from
    an older copy; the same number may then be of another row.
    """
    id_, counted_by = id_and_journal(row.cause)
    if row.device == "round" and counted_by:
        made = f"{counted_by}:{id_.partition(':')[2]}:{digest_of(row.device, row.type, row.time, row.data).hex()}"
    else:
        made = f"{journal}:{row.place}:{row.seq}"
    return f"{made}~{life}" if life else made
