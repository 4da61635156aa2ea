"""The history of a device from the changes of its state, for its page and for the timeline of its table. Pure.

A lost link until its return is one episode, a fault until its end another. Episodes of one kind that follow each other
closely are one line with a count.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from daemon.views import Change

__all__ = ["Episode", "Kind", "episodes", "recent"]

Kind: TypeAlias = Literal["offline", "fault", "online"]
CLOSE = timedelta(minutes=30)
"""Episodes of one kind with a shorter time between them are one line."""
MOST = 60


class Episode(Struct, frozen=True):
    """Something that happened to a device. `ended` None: not over. `times`, `seconds`: of all that are joined in one
    line.

    `online` has no duration: the device was connected anew without a loss before it, as after a restart of the edge.
    """

    kind: Kind
    began: datetime
    ended: datetime | None
    code: str = ""
    text: str = ""
    times: int = 1
    seconds: float = 0.0


def episodes(changes: Iterable[Change]) -> list[Episode]:
    """The episodes in the order of their beginnings. Commands and their answers are not episodes."""
    found: list[Episode] = []
    open_: dict[str, int] = {}
    for change in sorted(changes, key=lambda one: one.at):
        code, _, text = change.text.partition(" · ")
        match change.kind:
            case "device.offline" if "" not in open_:
                open_[""] = len(found)
                found.append(Episode("offline", change.at, None, text=change.text))
            case "device.faulted" if code and code not in open_:
                open_[code] = len(found)
                found.append(Episode("fault", change.at, None, code, text))
            case "device.recovered" if code in open_:
                _end(found, open_.pop(code), change.at)
            case "device.online" if "" in open_:
                _end(found, open_.pop(""), change.at)
            case "device.online":
                found.append(Episode("online", change.at, change.at))
            case _:
                pass
    return found


def _end(found: list[Episode], n: int, at: datetime) -> None:
    found[n] = replace(found[n], ended=at, seconds=(at - found[n].began).total_seconds())


def recent(found: Iterable[Episode], since: datetime) -> list[Episode]:
    """The episodes since then, the newest first, close ones of a kind as one; at most MOST."""
    lines: list[Episode] = []
    last: dict[tuple[Kind, str, str], int] = {}
    for one in found:
        if one.ended is not None and one.ended < since:
            continue
        key = one.kind, one.code, one.text
        before = lines[last[key]] if key in last else None
        if before is not None and before.ended is not None and one.began - before.ended < CLOSE:
            lines[last[key]] = replace(
                before, ended=one.ended, times=before.times + 1, seconds=before.seconds + one.seconds
            )
        else:
            last[key] = len(lines)
            lines.append(one)
    return sorted(lines, key=lambda one: one.ended or one.began, reverse=True)[:MOST]
