"""Print each round of a site as one line of JSON: in order, without gaps, after a restart from where it stopped.

Needs aiomqtt (pip install aiomqtt).
Usage: follow_results.py SITE [HOST [PORT [USER PASSWORD]]]
"""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

import aiomqtt

ENDS = ("resolved", "voided", "corrected")
OFFSETS = Path("offsets.json")  # by journal and table the seq that is expected next
AGAIN_S = 2.0
MOST_WAITING = 1000
REFUSED = ("Bad user name or password", "Not authorized")


async def main(site: str, *broker: str) -> None:
    """Follow the site, also after the broker was away. Ends where the broker refuses the user."""
    while True:
        try:
            await follow(site, *broker)
        except aiomqtt.MqttError as error:
            if isinstance(error, aiomqtt.MqttCodeError) and error.rc in REFUSED:
                sys.exit(f"the broker refuses this program: {error}; check user and password")
            print(f"no connection to the broker: {error}; trying again", file=sys.stderr, flush=True)
        await asyncio.sleep(AGAIN_S)


async def follow(site: str, host: str = "127.0.0.1", port: str = "1883", *login: str) -> None:
    user, password = login or (None, None)
    expected: dict[str, int] = json.loads(OFFSETS.read_text()) if OFFSETS.exists() else {}
    waiting: dict[str, dict[int, dict]] = {}  # what came too early, by seq

    async def ask(client: aiomqtt.Client, key: str) -> None:
        table = key.split("/")[1]
        request = json.dumps({"from": expected[key]})
        await client.publish(f"felt/1/{site}/table/{table}/round/cmd/replay", request, qos=1)

    async def ask_again(client: aiomqtt.Client) -> None:
        while True:
            await asyncio.sleep(AGAIN_S)
            with contextlib.suppress(aiomqtt.MqttError):  # the loop of the messages reports the lost connection
                for key in [key for key, early in waiting.items() if early]:
                    await ask(client, key)

    async with aiomqtt.Client(host, int(port), username=user, password=password) as client:
        await client.subscribe(f"felt/1/{site}/table/+/round/event/+", qos=1)
        for key in expected:  # what was published while this program did not run
            await ask(client, key)
        again = asyncio.create_task(ask_again(client))
        try:
            async for message in client.messages:
                event = json.loads(message.payload)
                table = str(message.topic).split("/")[4]
                key = f"{event['journal']}/{table}"
                seq = event["seq"]
                early = waiting.setdefault(key, {})
                if seq < expected.setdefault(key, seq):
                    continue  # delivered twice
                if seq == expected[key] or len(early) < MOST_WAITING:  # more is asked for again
                    early[seq] = event
                if expected[key] not in early:
                    await ask(client, key)
                while expected[key] in early:
                    tell(table, early.pop(expected[key]))
                    expected[key] += 1
                keep_offsets(expected)
        finally:
            again.cancel()


def keep_offsets(expected: dict[str, int]) -> None:
    """The new file takes the old one's place when it is whole and on the disk: it outlives a kill or a power cut."""
    new = OFFSETS.with_suffix(".new")
    with new.open("w") as file:
        file.write(json.dumps(expected))
        file.flush()
        os.fsync(file.fileno())
    new.replace(OFFSETS)


def tell(table: str, event: dict) -> None:
    if event["type"] in ENDS:
        result = event["data"]["result"]
        outcome = "void" if result["void"] else result["announcements"].get("en", "")
        line = {"table": table, "round": result["round"], "type": event["type"], "outcome": outcome}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
