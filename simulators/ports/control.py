"""The control interface of a running simulated device: one line in, one line out.

The same commands at the terminal, on the control port and in tests: an act (`draw`), `fault NAME`, `repair`, `unplug`,
`plug`, `help`, `quit`.
"""

from simulators.clock import Pace
from simulators.devices.device import ailments
from simulators.ports.port import Socket

__all__ = ["Control"]


class Control:
    """One simulated device under remote control."""

    def __init__(self, socket: Socket, pace: Pace) -> None:
        """The device is that of `socket`."""
        self._socket = socket
        self._pace = pace

    def help(self) -> str:
        """The commands that it accepts."""
        device = self._socket.device
        return (
            f"acts: {', '.join(device.acts()) or 'none'}; faults: {', '.join(ailments(device))}; "
            "repair, unplug, plug, help, quit"
        )

    def do(self, line: str) -> str | None:
        """Run one command line; returns the answer, or None to end."""
        answer = self._do(line)
        self._socket.stir()
        return answer

    def _do(self, line: str) -> str | None:
        device, port, now = self._socket.device, self._socket.port, self._pace.now()
        hands = device.acts()
        match line.split():
            case []:
                return ""
            case ["quit" | "exit"]:
                return None
            case ["help"]:
                return self.help()
            case ["repair"]:
                device.repair(now)
                return "repaired"
            case ["unplug"]:
                port.unplug()
                return "unplugged"
            case ["plug"]:
                try:
                    port.plug()
                except OSError as error:
                    return f"cannot be plugged in: {error.strerror}"
                return "plugged in"
            case [act] if act in hands:
                try:
                    done = hands[act](now)
                except ValueError as error:
                    return f"{act}: not now: {error}"
                return f"{act}: {done}" if done is not None else act
            case ["fault", fault] | [fault] if fault in ailments(device):
                try:
                    self._socket.inject(fault)
                except ValueError as error:
                    return f"fault {fault}: not now: {error}"
                return f"fault {fault}: {ailments(device)[fault].text}"
            case _:
                return f"unknown {line!r}; {self.help()}"
