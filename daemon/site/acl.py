"""The users of the backbone and their permissions, as configuration for its nodes. Pure."""

from collections.abc import Sequence

from daemon.config.backbone import BackboneUser
from daemon.config.model import Config
from daemon.site.streams import ADM, EV, RES, STREAMS, subject_of, subject_of_pool

__all__ = ["authorization"]

HEAD = """\
# The users of the backbone of site {site}, for the configuration of each node: include "users.conf"
# `feltd site acl` prints it from the configurations of all computers. A computer writes rows of its
# own tables and reads none; that of a replica of the rules writes results alone, and its rules read.
# Replace each password by the output of `nats server passwd`; a certificate needs none.
"""


def authorization(configs: Sequence[Config]) -> str:
    """The block `authorization` of nats-server."""
    blocks = []
    for config in configs:
        if config.backbone.servers:
            blocks.append(_user(_name(config.forward, config.edge.name), *_of_forwarder(config)))
        if config.replica.events == "backbone":
            blocks.append(_user(_name(config.replica, config.rules.name), *_of_reader(config.rules.name)))
        if config.ledger.database:
            blocks.append(_user(_name(config.ledger, "ledger"), *_of_reader("ledger")))
    everything = ["$JS.API.>", "_INBOX.>"]
    blocks.append(_user({"user": '"admin"', "password": '"REPLACE"'}, everything, ["_INBOX.>", "_INBOX_*.>"]))
    return HEAD.format(site=configs[0].site.name) + "authorization {\n  users: [\n" + "\n".join(blocks) + "\n  ]\n}\n"


def _name(part: BackboneUser, name: str) -> dict[str, str]:
    """The user: a name, or the subject of a certificate, for which tls needs `verify_and_map: true`."""
    if part.certificate:
        return {"user": f'"CN={name}"'}
    return {"user": f'"{part.username or name}"', "password": '"REPLACE"'}


def _of_forwarder(config: Config) -> tuple[list[str], list[str]]:
    site = config.site.name
    writes = (RES,) if config.replica.events == "backbone" else (EV, RES)
    publish = [subject_of(stream, site, table.name) for table in config.table for stream in writes]
    publish += [subject_of_pool(site, pool.name) for pool in config.jackpot]
    jackpots = [config.jackpots.name] if config.jackpot else []
    publish += [subject_of(ADM, site, name) for name in (config.edge.name, config.rules.name, *jackpots)]
    publish += [f"$JS.API.STREAM.INFO.{one.name}" for one in STREAMS]
    publish += ["$JS.API.STREAM.LIST", "$JS.API.STREAM.NAMES"]
    return publish, [f"_INBOX_{config.edge.name}.>"]


def _of_reader(name: str) -> tuple[list[str], list[str]]:
    """The rights of a reader. It reads all tables: nats-server has no rights for single subjects of a stream."""
    publish = [f"$JS.API.STREAM.INFO.{one}" for one in (EV, RES)]
    publish += [f"$JS.API.CONSUMER.{verb}.{one}.>" for verb in ("CREATE", "INFO", "MSG.NEXT") for one in (EV, RES)]
    publish += [f"$JS.API.CONSUMER.DELETE.{one}.>" for one in (EV, RES)]
    publish += [f"$JS.ACK.{one}.>" for one in (EV, RES)]
    return publish, [f"_INBOX_{name}.>"]


def _user(who: dict[str, str], publish: list[str], subscribe: list[str]) -> str:
    quoted = [", ".join(f'"{subject}"' for subject in subjects) for subjects in (publish, subscribe)]
    named = ", ".join(f"{key}: {value}" for key, value in who.items())
    return f"    {{ {named}, permissions: {{ publish: [{quoted[0]}], subscribe: [{quoted[1]}] }} }}"
