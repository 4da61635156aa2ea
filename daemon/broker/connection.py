"""Connects to the broker and stays connected.

`connect` opens one session with MQTT 5 or 3.1.1, as configured. `stay_connected` serves one session after the other; it
logs once when the broker is lost and once when it is back, and goes from one broker of a site to the next.
"""

import asyncio
import hmac
import ssl
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import structlog

from daemon import logs
from daemon.broker.broker_trial import trial_topic, try_broker
from daemon.broker.mqtt5_session import connect_mqtt5
from daemon.broker.session import BrokerLost, BrokerRefused, Session, UnreadableFile, Will
from daemon.config.model import Mqtt, brokers_of

__all__ = ["Connect", "connect", "look_at_files", "stay_connected"]

LOST_AT_ONCE_S = 1.0
"""Seconds. A shorter session counts as a refusal: the next one counts as good after TRIAL_S."""
TRIAL_S = 10.0
FIRST_DELAY_S, LONGEST_DELAY_S = 0.1, 5.0
RETURN_S = 45.0
"""Seconds for which the first broker must be back: it then has all states again, from bridges that try each 30 s."""
NEVER = float("-inf")

Connect = Callable[[Mqtt, str, Will | None], AbstractAsyncContextManager[Session]]


def connect(settings: Mqtt, identifier: str, will: Will | None = None) -> AbstractAsyncContextManager[Session]:
    """A session with the broker. `identifier` becomes the client id `bound`; with "" the broker chooses one.

    Raises BrokerLost, also for an unreadable password or certificate.
    """
    password = _password(settings)
    identifier = bound(identifier, password or _key(settings))
    options: dict[str, Any] = {
        "username": settings.username,
        "password": password,
        "tls": _tls(settings),
        "will": will,
    }
    if settings.version == "5":
        return connect_mqtt5(settings.host, settings.port, identifier, **options)
    from daemon.broker.mqtt311_session import connect_mqtt311

    return connect_mqtt311(settings.host, settings.port, identifier, **options)


def look_at_files(settings: Mqtt) -> None:
    """Raise UnreadableFile where a password, key or certificate of this process cannot be read."""
    _password(settings)
    _key(settings)
    _tls(settings)


def _password(settings: Mqtt) -> str | None:
    found = _secret(settings.password_file, "utf-8", "the password is no UTF-8 text; write the file anew as UTF-8")
    return found and found.strip()


def _key(settings: Mqtt) -> str | None:
    """The private key of the client certificate, if the certificate identifies the user. Raises BrokerLost."""
    return _secret(settings.key, "ascii", "no key as PEM")


def _secret(path: str, encoding: str, otherwise: str) -> str | None:
    """The text of a file, None where none is named. Raises UnreadableFile, whose text has no byte of it."""
    try:
        return Path(path).read_text(encoding=encoding) if path else None
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path}: {otherwise}") from error


def bound(identifier: str, password: str | None) -> str:
    """The client id for `identifier`, with a code that only a client with the password or key can compute.

    A broker ends a session when another client connects with the same id, whichever user that is. A plain id would let
    every user end every session. The code is stable over restarts, as the delay of the will requires.
    """
    if not identifier or not password:
        return identifier
    digest = hmac.digest(password.encode(), f"feltd client id {identifier}".encode(), "sha256")
    return f"{identifier}-{digest.hex()[:16]}"


def _tls(settings: Mqtt) -> ssl.SSLContext | None:
    """The TLS context, if TLS is configured. Raises BrokerLost, which names the file."""
    if not settings.ca_file:
        return None
    files = [one for one in (settings.ca_file, settings.certificate, settings.key) if one]
    try:
        for one in files:  # OpenSSL's error does not name the file
            with Path(one).open("rb"):
                pass
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.certificate:
            context.load_cert_chain(settings.certificate, settings.key, password=_no_password)
    except ssl.SSLError as error:
        raise UnreadableFile(f"{', '.join(files)}: no PEM certificate, or a wrong or encrypted key") from error
    except OSError as error:
        raise UnreadableFile(f"{error.filename}: {error.strerror}") from error
    return context


def _no_password() -> str:
    """An empty passphrase: otherwise OpenSSL prompts for one on the terminal."""
    return ""


async def stay_connected(
    settings: Mqtt,
    identifier: str,
    will: Will | None,
    serve: Callable[[Session], Coroutine[Any, Any, None]],
    log: structlog.typing.FilteringBoundLogger,
    connecting: Connect | None = None,
) -> None:
    """Serve one session after the other until cancelled. Log once when lost, once when back.

    Of several brokers the next is tried when one is lost, and the first when it is back, so that readers and
    writers use the same one. A process with a will first tries the broker by a session of its own.
    `connecting` replaces `connect` in simulations, which have a broker of their own.
    """
    loop, connecting = asyncio.get_running_loop(), connecting or connect
    delay_s, trial_s, served = FIRST_DELAY_S, 0.0, NEVER
    lost, untried = False, will is not None
    brokers, number = brokers_of(settings), 0

    async def one_session() -> None:
        nonlocal served, lost, trial_s, untried
        if will is not None and untried:
            await _try(connecting(brokers[number], "", None), trial_topic(will), log)
            untried = False
        async with connecting(brokers[number], identifier, will) as session, asyncio.TaskGroup() as group:
            served = loop.time()
            group.create_task(session.until_lost())
            group.create_task(serve(session))
            if number:
                group.create_task(_until_back(brokers[0], connecting))
            await asyncio.sleep(trial_s)
            log.info("broker.back" if lost else "broker.connected", broker=where)
            lost, trial_s = False, 0.0

    while True:
        served, where = NEVER, f"{brokers[number].host}:{brokers[number].port}"
        # In a task of its own: a task group that fails while it is cancelled raises only its failure, and a cancelled
        # process would connect again.
        session = asyncio.create_task(one_session())
        session.add_done_callback(_retrieve)
        try:
            await asyncio.wait([session])
            session.result()
        except* BrokerLost as errors:
            reason = str(logs.first(errors.subgroup(BrokerRefused) or errors))
            number = 0 if errors.subgroup(_FirstIsBack) else (number + 1) % len(brokers)
        finally:
            if session.cancel():
                await asyncio.wait([session])
        if loop.time() - served < LOST_AT_ONCE_S:
            trial_s = TRIAL_S  # the session was lost at once: the next one counts as good after TRIAL_S
        elif served > NEVER:
            delay_s = FIRST_DELAY_S
        if not lost:
            log.warning("broker.lost", broker=where, reason=reason, remedy="check the broker; no event is lost")
            lost = True
        await asyncio.sleep(delay_s)
        if number == 0:  # all were tried
            delay_s = min(delay_s * 2, LONGEST_DELAY_S)


class _FirstIsBack(BrokerLost):
    """The first broker of the site is there again."""


async def _until_back(first: Mqtt, connecting: Connect) -> None:
    """Raise _FirstIsBack when the first broker has answered for a while."""
    answers = 0
    while answers < 2:
        await asyncio.sleep(RETURN_S)
        try:
            async with connecting(first, "", None):
                answers += 1
        except BrokerLost:
            answers = 0
    raise _FirstIsBack(f"{first.host}:{first.port} is back")


async def _try(
    connecting: AbstractAsyncContextManager[Session], topic: str, log: structlog.typing.FilteringBoundLogger
) -> None:
    """Try the broker by a session of its own. Raises BrokerRefused, BrokerLost."""
    async with connecting as session:
        if not await try_broker(session, topic):
            log.info("broker.untried", topic=topic, remedy="let this process read it: feltd acl")


def _retrieve(task: asyncio.Task[None]) -> None:
    """Retrieve the outcome of a task: asyncio would log it otherwise."""
    if not task.cancelled():
        task.exception()
