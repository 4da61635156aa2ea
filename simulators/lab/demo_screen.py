"""The screen of `feltd demo`: one line for each table, what is wrong, the sign-in, and the keys.

`Screen.lines` draws it for any size. The title, the sign-in and the keys are always there; tables that do not fit are
counted in one line, and then the worst come first.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal, TypeAlias

from msgspec import Struct
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from daemon.cli.watch import in_words, round_number
from daemon.console.auth.second_factor import code_at
from daemon.read_model import SiteState
from daemon.views import TableView
from daemon.words import words
from protocols.contract.documents import Alert
from protocols.contract.jackpots import PoolLevel
from protocols.contract.results import Result
from simulators.lab.live_faults import LiveFaults

__all__ = ["Lamp", "Login", "Screen"]

Mark: TypeAlias = Literal["fault", "not known", "waits", "look", "well"]
MARKS: Mapping[Mark, tuple[str, str]] = {
    "fault": ("✖", "red"),
    "not known": ("?", "bright_black"),
    "waits": ("‖", "magenta"),
    "look": ("▲", "yellow"),
    "well": ("●", "green"),
}
"""The worst first: the sign and the colour of a line."""
IDLE_S = 30.0
"""Seconds without a key after which the screen shows the worst tables again."""
RARE_S = 10.0
"""Seconds for which a note is shown."""
LEAST_ROWS = 3
Lamp: TypeAlias = tuple[bool, str]


class Login(Struct, frozen=True):
    """The console's address and the accounts: name, role and what to try with it. All have the same password.

    `broker_port` and `site` are for programs that read the broker. `secret` of the second factor is the same for all
    accounts that have one.
    """

    port: int
    password: str
    accounts: tuple[tuple[str, str, str], ...]
    broker_port: int
    site: str
    secret: str = ""

    @property
    def code(self) -> str:
        """One line with the second factor's code, which orders about money require: no app shows it here."""
        now = datetime.now(UTC)
        left = 30 - int(now.timestamp()) % 30
        return f"code of the second factor: {code_at(self.secret, now)}, for {left} s" if self.secret else ""

    @property
    def url(self) -> str:
        """The address on loopback: the password is of no use on other computers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def others(self) -> str:
        """The further accounts, in one line."""
        said = f"the same password: {', '.join(name for name, _, _ in self.accounts[1:])}"
        return f"{said}; secret of the second factor: {self.secret}" if self.secret else said

    @property
    def broker(self) -> str:
        """The data that a program needs to read the broker, in one line."""
        return f"broker: 127.0.0.1 port {self.broker_port}, site {self.site}; no user and no password"

    def __str__(self) -> str:
        return f"{self.url}  user {self.accounts[0][0]}, password {self.password}"


class _Row(Struct, frozen=True):
    """One table."""

    name: str
    game: str
    mark: Mark
    phase: str
    last: str
    state: str


class Screen:
    """The screen's content and its keys. `lamps`: the broker and the processes with their process ids."""

    def __init__(  # all it shows
        self,
        site: SiteState,
        games: Mapping[str, str],
        faults: LiveFaults,
        login: Login,
        *,
        title: str,
        edge: str,
        lamps: Callable[[], Sequence[Lamp]],
        levels: Callable[[], Iterable[PoolLevel]] = tuple,
        played: Iterable[str] = (),
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`games`: the tables in order with their rulesets; `played`: those that a person deals.

        `seconds` is a monotonic clock.
        """
        self._played = frozenset(played)
        self._site = site
        self._games = games
        self._faults = faults
        self._login = login
        self._title = title
        self._edge = edge
        self._lamps = lamps
        self._levels = levels
        self._seconds = seconds
        self._page: Literal["tables", "faults", "accounts"] = "tables"
        self._chosen = ""
        self._choice = 0
        self._top = 0
        self._window = 1
        self._order: list[str] = list(games)
        self._last_key = float("-inf")
        self._note = ""
        self._noted = float("-inf")

    # ---- keys

    def press(self, key: str) -> bool:
        """Act on a key; True ends the demo."""
        self._last_key = self._seconds()
        match self._page, key:
            case "tables", "q" | "Q":
                return True
            case "tables", "f":
                self._open_faults()
            case "tables", "x":
                self._say_injected(self._faults.inject_any(self.chosen) is not None)
            case _, "h":
                healed = self._faults.heal(self.chosen)
                self._say(f"{self.chosen}: healed" if healed else f"{self.chosen}: repaired; no fault was open")
            case _, "H":
                self._say(f"all tables healed, {self._faults.heal()} faults")
            case "tables", "d":
                self._page = "accounts"
            case "faults", "enter":
                self._inject_choice()
            case (("faults" | "accounts"), ("escape" | "q" | "d" | "f" | "enter")):
                self._page = "tables"
            case _, "up" | "k":
                self._move(-1)
            case _, "down" | "j":
                self._move(1)
            case _, "page up":
                self._move(-self._window)
            case _, "page down":
                self._move(self._window)
            case _:
                pass
        return False

    @property
    def chosen(self) -> str:
        """The table that the keys act on."""
        return self._chosen if self._chosen in self._games else self._order[0]

    def _move(self, by: int) -> None:
        match self._page:
            case "tables":
                at = self._order.index(self.chosen) + by if self._chosen else max(by - 1, 0)
                self._chosen = self._order[min(max(at, 0), len(self._order) - 1)]
            case "faults":
                last = len(self._faults.choices(self.chosen)) - 1
                self._choice = min(max(self._choice + by, 0), last)
            case _:
                pass

    def _open_faults(self) -> None:
        self._chosen = self.chosen
        if self._faults.choices(self._chosen):
            self._page, self._choice, self._top = "faults", 0, 0
        else:
            self._say(f"{self._chosen} is yours to deal: it has no simulated device")

    def _inject_choice(self) -> None:
        device, fault, _ = self._faults.choices(self.chosen)[self._choice]
        self._faults.inject(self.chosen, device, fault)
        self._page, self._top = "tables", 0
        self._say_injected(True)

    def _say_injected(self, done: bool) -> None:
        self._say("" if done else f"{self.chosen} is yours to deal: it has no simulated device")

    def _say(self, text: str) -> None:
        self._note, self._noted = text, self._seconds()

    # ---- drawing

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """For rich's Live."""
        lines = self.lines(options.max_width, options.height or console.height, datetime.now().astimezone())
        yield Text("\n", no_wrap=True, overflow="crop", end="").join(lines)

    def lines(self, width: int, height: int, now: datetime) -> list[Text]:
        """Exactly `height` lines of at most `width` columns."""
        if self._chosen and self._page == "tables" and self._seconds() - self._last_key > IDLE_S:
            self._chosen, self._top = "", 0
        rows = [self._row(name, ruleset) for name, ruleset in self._games.items()]
        head = self._head(rows, width, now)
        foot = [*self._noted_line(), self._sign_in(width), self._keys(width)]
        room = max(height - len(head) - len(foot), 0)
        match self._page:
            case "accounts":
                body = self._accounts()
            case "faults":
                body = self._choices(width, room)
            case _:
                body = self._tables(rows, width, room)
        body = body[:room] + [Text()] * (room - len(body))
        lines = [*head, *body, *foot][-height:]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return lines

    def _head(self, rows: Sequence[_Row], width: int, now: datetime) -> list[Text]:
        bad = sum(row.mark != "well" for row in rows)
        title = Text("feltd demo", style="bold").append(f"  {self._title}, {len(rows)} tables", style="not bold")
        title.append(f", {bad} not well" if bad else "", style="red not bold")
        clock = f"{now:%H:%M:%S}"
        title.pad_right(width - len(title) - len(clock))
        lines = [title.append(clock, style="not bold")]
        line = Text()
        for good, name in self._lamps():
            lamp = Text("●" if good else "✖", style="green" if good else "red").append(name, style="")
            if line and len(line) + 1 + len(lamp) > width:
                lines.append(line)
                line = Text()
            line = line.append(" " if line else "").append_text(lamp)
        return [*lines, line]

    def _sign_in(self, width: int) -> Text:
        text = Text(f"{self._login}", style="bold")
        more = "  (d: other accounts)"
        return text.append(more, style="dim not bold") if len(text) + len(more) <= width else text

    def _keys(self, width: int) -> Text:
        match self._page:
            case "accounts":
                keys = "Esc back"
            case "faults":
                keys = "↑↓ choose  Enter inject it  h heal  Esc back"
            case _:
                keys = "↑↓ table  f a fault  x any fault  h heal  H heal all  d accounts  q end"
        return Text(keys if len(keys) <= width else keys.replace("  ", " "), style="reverse")

    def _tables(self, rows: Sequence[_Row], width: int, room: int) -> list[Text]:
        alerts = self._alerts()
        room -= 1  # the heads of the columns
        if room >= len(rows):
            shown = list(rows)
            more: list[Text] = []
            self._window = len(rows)
        else:
            self._window = max(room - 1 - bool(alerts), LEAST_ROWS)
            worst = list(MARKS)
            shown = sorted(rows, key=lambda row: worst.index(row.mark))
            self._order = [row.name for row in shown]
            shown, rest = self._in_sight(shown)
            count = Counter(row.mark for row in rest)
            text = ", ".join(f"{count[mark]} {mark}" for mark in MARKS if count[mark])
            more = [Text(f"  … {len(rest)} more: {text}   (Space: next page)", style="dim")]
        if self._window == len(rows):
            self._order = [row.name for row in rows]
        lines = [*self._grid(shown, width), *more]
        left = room + 1 - len(lines)
        levels = [_level(level) for level in self._levels()]
        extra = [*alerts[:2], *levels, *alerts[2:]][: max(left, 0)]
        gap = [Text()] * min(left - len(extra), 1)
        return [*lines, *gap, *extra]

    def _in_sight(self, rows: list[_Row]) -> tuple[list[_Row], list[_Row]]:
        """The lines of the page with the chosen table, and the others."""
        at = self._order.index(self._chosen) if self._chosen else 0
        self._top = min(self._top, at, max(len(rows) - self._window, 0))
        self._top = max(self._top, at - self._window + 1)
        end = self._top + self._window
        return rows[self._top : end], rows[: self._top] + rows[end:]

    def _grid(self, rows: Sequence[_Row], width: int) -> list[Text]:
        name, phase = max(len(name) for name in self._games) + 1, 16
        game = min(max(map(len, (_game(one) for one in self._games.values()))), 17 if width >= 100 else 15) + 1
        rest = max(width - 2 - name - game - phase, 20)
        last = rest if all(row.mark == "well" for row in rows) else max(rest * 2 // 5, 14)
        head = Text("  " + "table".ljust(name) + "game".ljust(game) + "phase".ljust(phase), style="dim")
        lines = [head.append("last result".ljust(last)).append("state" if last < rest else "")]
        for row in rows:
            sign, style = MARKS[row.mark]
            line = Text(f"{sign} ", style=style)
            line.append_text(_cell(row.name, name, "bold"))
            line.append_text(_cell(row.game, game, "dim"))
            line.append_text(_cell(row.phase, phase, ""))
            line.append_text(_cell(row.last, last if row.state else rest, ""))
            line.append(row.state, style=style)
            if row.name == self._chosen:
                line.stylize("reverse")
            lines.append(line)
        return lines

    def _row(self, name: str, ruleset: str) -> _Row:
        view = self._site.tables.get(name, TableView())
        known = self._site.connected and self._site.is_online(self._edge) and self._site.is_online("rules")
        alerts = sorted(view.alerts.values(), key=lambda alert: alert.severity != "error")
        offline = [device for device, online in view.online.items() if not online]
        state = ""
        mark: Mark = "well"
        if not known:
            mark, state = "not known", "edge, rules or broker offline"
        elif alerts and alerts[0].severity == "error":
            mark, state = "fault", _short(alerts[0])
        elif offline:
            mark, state = "fault", f"{', '.join(offline)} offline"
        elif view.phase == "suspended":
            mark, state = "waits", "waits for a person"
        elif alerts:
            mark, state = "look", _short(alerts[0])
        last = _result(view.results[-1]) if view.results else "yours to deal" if name in self._played else ""
        if not ruleset and view.lately:
            last = in_words(view.lately[-1])[1]
        phase = words.say("en", f"phase.{view.phase}") if ruleset else "no game"
        return _Row(name, _game(ruleset), mark, phase, last, state)

    def _alerts(self) -> list[Text]:
        """The alerts with their remedies, those of the chosen table first."""
        found = [(name, alert) for name in self._games for alert in self._alerts_of(name)]
        found.sort(key=lambda one: (one[0] != self._chosen, one[1].severity != "error"))
        lines: list[Text] = []
        for name, alert in found:
            style = "red" if alert.severity == "error" else "yellow"
            line = Text(f"{name} {alert.device or alert.round}: ", style="bold").append(
                alert.text, style=f"{style} not bold"
            )
            lines += [line, Text(f"    {alert.remedy}")] if alert.remedy else [line]
        return lines

    def _alerts_of(self, table: str) -> Iterable[Alert]:
        return self._site.tables.get(table, TableView()).alerts.values()

    def _noted_line(self) -> list[Text]:
        """The effect of the last key, then the last open fault."""
        if self._note and self._seconds() - self._noted < RARE_S:
            return [Text(self._note, style="cyan")]
        if not self._faults.open:
            return []
        last = self._faults.open[-1]
        more = f" (and {len(self._faults.open) - 1} more)" if len(self._faults.open) > 1 else ""
        end = "h heals it" if last.stays else "it ends by itself"
        return [Text(f"injected{more}: {last.table}/{last.device} {last.fault}; {end}: {last.text}", style="cyan")]

    def _choices(self, width: int, room: int) -> list[Text]:
        """The faults of the chosen table; the marked one with its whole description."""
        choices = self._faults.choices(self.chosen)
        ailment = choices[self._choice][2]
        end = "a person ends it (h)" if ailment.person else "it ends by itself"
        effect = "does not touch the round" if ailment.round == "none" else f"round: {ailment.round}"
        about = [Text(), *Text(f"{ailment.text} - {effect}, {end}").wrap(Console(width=width), width)]
        self._window = max(room - 1 - len(about), 1)
        top = min(max(self._choice - self._window // 2, 0), max(len(choices) - self._window, 0))
        lines = [Text(f"Faults of {self.chosen} ({self._choice + 1} of {len(choices)})", style="bold")]
        device = max(len(name) for name, _, _ in choices) + 1
        fault = max(len(name) for _, name, _ in choices) + 1
        for at in range(top, min(top + self._window, len(choices))):
            where, name, ailment = choices[at]
            line = _cell(where, device, "").append_text(_cell(name, fault, "bold")).append(ailment.text)
            line.truncate(width, pad=at == self._choice, overflow="ellipsis")
            if at == self._choice:
                line.stylize("reverse")
            lines.append(line)
        return [*lines, *about]

    def _accounts(self) -> list[Text]:
        lines = [Text(f"Accounts of the console at {self._login.url}", style="bold")]
        lines += [Text(f"The password of each: {self._login.password}"), Text(self._login.code), Text()]
        for name, role, what in self._login.accounts:
            lines.append(_cell(name, 14, "bold").append_text(_cell(role, 14, "")).append(what))
        if self._played:
            mine = ", ".join(sorted(self._played))
            lines += [Text(), Text(f"Deal a round yourself as dealer at {self._login.url}/dealer ({mine}).")]
        return [*lines, Text(), Text(self._login.broker)]


def _cell(text: str, width: int, style: str) -> Text:
    """`text` in so many columns, with one free at the end."""
    cell = Text(text, style=style, end="")
    cell.truncate(max(width - 1, 0), overflow="ellipsis", pad=True)
    return Text().append_text(cell).append(" ")


def _game(ruleset: str) -> str:
    return ruleset.rpartition(".")[2] or "-"


def _short(alert: Alert) -> str:
    return f"{alert.device}: {alert.text}" if alert.device else alert.text


def _result(result: Result) -> str:
    """ "124: 17, black"."""
    void = result.void
    said = f"void: {words.reason('en', void.reason)}" if void is not None else result.announcements.get("en", "")
    return f"{round_number(result.round)}: {said}"


def _level(level: PoolLevel) -> Text:
    """A jackpot: its amount and its waiting wins."""
    amount = Decimal(level.amount).scaleb(-level.decimals)
    text = Text(f"jackpot {level.pool}  ", style="bold")
    text.append(f"{amount:,.{level.decimals}f} {level.currency}", style="not bold")
    waiting = ", ".join(f"{one.combination} {one.state}" for one in level.pending[:3])
    waiting += f", {level.waiting} wait" if level.waiting > 3 else ""
    return text.append(f"  {waiting}", style="yellow not bold")
