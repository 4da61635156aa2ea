"""Measures the backbone for `feltd doctor` and `feltd site init`, and makes its streams."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx
import nats
import nats.errors
import nats.js.errors
from msgspec import Struct
from nats.js.api import DiscardPolicy, StorageType, StreamConfig

from daemon.config.model import Config
from daemon.site.backbone import options_of
from daemon.site.streams import DUPLICATES_S, EV, LEAST_VERSION, OWN_TOPICS, REPLICAS, STREAMS, Stream

__all__ = ["Facts", "Finding", "Node", "StreamFacts", "findings", "make_streams", "measured"]

TIMEOUT_S = 5.0
ELECTION_S = 60.0
"""A request about a stream is repeated for so long: nodes that elect a leader drop it, busy computers take longer."""
CLOCK_S = 2.0
LEAST_PAYLOAD = 1024 * 1024 + 64 * 1024
FULL = 0.8


class Node(Struct, frozen=True):
    """The answers of a node's monitoring port. `error`: why there are none."""

    address: str
    error: str = ""
    version: str = ""
    syncs: bool = False
    clock_off_s: float = 0.0
    used: int = 0
    room: int = 0
    max_payload: int = 0


class StreamFacts(Struct, frozen=True):
    """The present settings of a stream."""

    name: str
    subjects: tuple[str, ...] = ()
    replicas: int = 1
    in_memory: bool = False
    forgets_new: bool = True
    remembers_ids_s: float = 0.0


class Facts(Struct, frozen=True):
    """All measurements. `error`: why JetStream did not answer. `one_machine`: from the configuration."""

    nodes: tuple[Node, ...] = ()
    streams: tuple[StreamFacts, ...] = ()
    error: str = ""
    one_machine: bool = False


class Finding(Struct, frozen=True):
    """A problem and its remedy. `where` is a node, a stream, or the backbone."""

    where: str
    text: str
    remedy: str


def findings(facts: Facts, *, with_streams: bool = True) -> list[Finding]:
    """Why this backbone may lose results. Pure."""
    found = [one for node in facts.nodes for one in _of_node(node)]
    hosts = {urlsplit(node.address).hostname for node in facts.nodes}
    if not facts.nodes:
        text = "its nodes cannot be checked: [backbone] monitors names none"
        found.append(Finding("backbone", text, 'write monitors = ["http://NODE:8222", …], one for each node'))
    elif len(hosts) < REPLICAS and not facts.one_machine:
        text = f"its nodes are on {len(hosts)} computer(s)"
        remedy = "three computers with three disks and power feeds; for a demo write one_machine = true"
        found.append(Finding("backbone", text, remedy))
    if facts.error:
        remedy = "check servers, user and certificate under [backbone] and [forward], and that JetStream is on"
        return [*found, Finding("backbone", facts.error, remedy)]
    there = {one.name: one for one in facts.streams}
    for one in facts.streams:
        taken = [subject for subject in one.subjects if subject.partition(".")[0] in (OWN_TOPICS, ">", "*")]
        if taken:
            text = f"it takes {', '.join(taken)}: everything would be stored twice, without ids and with gaps"
            found.append(Finding(f"stream {one.name}", text, f"nats stream rm {one.name}; streams take feltd.> alone"))
    for wanted in STREAMS if with_streams else ():
        found += _of_stream(wanted, there.get(wanted.name))
    return found


def _of_node(node: Node) -> list[Finding]:
    where, found = f"node {node.address}", list[Finding]()
    if node.error:
        return [Finding(where, node.error, "start it; check its address under [backbone] monitors")]
    parts = node.version.partition("-")[0].split(".")
    version = tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()
    if version < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        found.append(
            Finding(where, f"version {node.version}: it may lose confirmed messages", f"install {least} or newer")
        )
    if not node.syncs:
        text = "it confirms messages before they are on its disk"
        found.append(Finding(where, text, "write sync_interval: always under jetstream, and restart it"))
    if node.max_payload < LEAST_PAYLOAD:
        found.append(Finding(where, "it refuses the longest results", "write max_payload: 2MB, and restart it"))
    if abs(node.clock_off_s) > CLOCK_S:
        text = f"its clock differs by {node.clock_off_s:.0f} s from the one here"
        found.append(Finding(where, text, "synchronize both with the time server of the house"))
    if node.room and node.used > FULL * node.room:
        text = f"{node.used / node.room:.0%} of its room for streams is used"
        found.append(Finding(where, text, "give it more (max_file_store, disk) before the streams refuse rows"))
    return found


def _of_stream(wanted: Stream, there: StreamFacts | None) -> list[Finding]:
    where, remedy = f"stream {wanted.name}", "feltd site init"
    if there is None:
        return [Finding(where, "it does not exist", remedy)]
    wrong = []
    if there.replicas < REPLICAS:
        wrong.append(f"{there.replicas} copies and not {REPLICAS}")
    if there.in_memory:
        wrong.append("kept in memory")
    if there.forgets_new:
        wrong.append("it deletes old rows where it must refuse new ones (discard)")
    if there.remembers_ids_s < DUPLICATES_S:
        wrong.append(
            f"it keeps message ids for {there.remembers_ids_s:g} s and not {DUPLICATES_S:g} (duplicate_window)"
        )
    if there.subjects != wanted.subjects:
        wrong.append(f"subjects {', '.join(there.subjects)}")
    return [Finding(where, "; ".join(wrong), remedy)] if wrong else []


async def measured(config: Config) -> Facts:
    """Ask all nodes, and JetStream as the user of [forward]."""
    nodes = tuple(await asyncio.gather(*(_node(address) for address in config.backbone.monitors)))
    try:
        streams, error = await _streams(config), ""
    except (nats.errors.Error, OSError, ValueError, TimeoutError) as failed:
        streams, error = (), f"JetStream does not answer: {str(failed) or type(failed).__name__}"
    return Facts(nodes, streams, error, config.backbone.one_machine)


async def _node(address: str) -> Node:
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
            said: dict[str, Any] = json.loads((await client.get(f"{address.rstrip('/')}/varz")).text)
        jetstream = said.get("jetstream") or {}
        config, stats = jetstream.get("config") or {}, jetstream.get("stats") or {}
        at = datetime.fromisoformat(f"{str(said['now'])[:19]}+00:00")
        return Node(
            address,
            version=str(said["version"]),
            syncs=bool(config.get("sync_always")),
            clock_off_s=(at - datetime.now(UTC)).total_seconds(),
            used=int(stats.get("storage", 0)),
            room=int(config.get("max_storage", 0)),
            max_payload=int(said["max_payload"]),
        )
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Node(address, error=f"no answer: {str(error) or type(error).__name__}")


async def _connected(config: Config) -> Any:
    options = options_of(config.backbone, config.forward, config.edge.name)
    async with asyncio.timeout(TIMEOUT_S):
        return await nats.connect(**options, error_cb=_quiet, allow_reconnect=False, connect_timeout=2)


async def _quiet(_error: Exception) -> None:
    """Ignore connection errors: the request that waits for an answer raises them."""


async def _streams(config: Config) -> tuple[StreamFacts, ...]:
    connection = await _connected(config)
    try:
        found = await connection.jetstream(timeout=TIMEOUT_S).streams_info()
    finally:
        await connection.close()
    return tuple(
        StreamFacts(
            one.config.name,
            tuple(one.config.subjects or ()),
            one.config.num_replicas or 1,
            one.config.storage != StorageType.FILE,
            one.config.discard != DiscardPolicy.NEW,
            float(one.config.duplicate_window or 0),
        )
        for one in found
    )


async def _repeated(request: Callable[[], Awaitable[Any]]) -> Any:
    """The answer to a request that has the same effect when it is repeated."""
    until = time.monotonic() + ELECTION_S
    while True:
        try:
            return await request()
        except (nats.errors.TimeoutError, nats.js.errors.ServiceUnavailableError):
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.5)


async def make_streams(config: Config, events_gb: int) -> list[str]:
    """Make missing streams and update the settings of the others. Returns a line for each.

    Raises nats.errors.Error, OSError, TimeoutError, ValueError.
    """
    connection = await _connected(config)
    jetstream, lines = connection.jetstream(timeout=TIMEOUT_S), []
    try:
        for one in STREAMS:
            settings = StreamConfig(
                name=one.name,
                subjects=list(one.subjects),
                storage=StorageType.FILE,
                num_replicas=REPLICAS,
                discard=DiscardPolicy.NEW,  # a full stream refuses new rows instead of deleting old ones
                max_age=one.keep.total_seconds(),
                max_bytes=events_gb * 10**9 if one.name == EV else -1,
                duplicate_window=DUPLICATES_S,
            )
            try:
                await _repeated(partial(jetstream.stream_info, one.name))
            except nats.js.errors.NotFoundError:
                await _repeated(partial(jetstream.add_stream, settings))
                lines.append(f"stream {one.name}: made, {REPLICAS} copies, {one.keep.days} days")
            else:
                await _repeated(partial(jetstream.update_stream, settings))
                lines.append(f"stream {one.name}: existed")
    finally:
        await connection.close()
    return lines
