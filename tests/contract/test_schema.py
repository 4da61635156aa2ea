"""The published contract is made from the code, and what we publish fits it."""

import json
import re
from pathlib import Path
from typing import Any

import corpus
import msgspec
import pytest
from click.testing import CliRunner
from helpers import at_length, script

from daemon.cli.main import main
from protocols.contract.events import EVENT_TYPES, CardDrawn, DiceRead
from protocols.contract.topics import encode_envelope
from rules import RULESETS
from rules.engine.ruleset import options_from
from rules.facts import facts_of

PUBLISHED = Path(__file__).parents[2] / "docs/reference/asyncapi.json"
DOCUMENT: dict[str, Any] = json.loads(PUBLISHED.read_text(encoding="utf-8"))


def test_the_document_in_docs_is_what_the_code_says() -> None:
    """`feltd schema > docs/reference/asyncapi.json` after a change of events, results or topics."""
    made = CliRunner().invoke(main, ["schema"])
    assert made.exit_code == 0
    assert json.loads(made.output) == DOCUMENT


def test_every_reference_leads_somewhere() -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                place: Any = DOCUMENT
                for word in value["$ref"].removeprefix("#/").split("/"):
                    place = place[word]
            for one in value.values():
                walk(one)
        elif isinstance(value, list):
            for one in value:
                walk(one)

    walk(DOCUMENT)


@pytest.mark.parametrize("name", DOCUMENT["channels"])
def test_a_channel_has_a_parameter_for_each_name_in_its_address(name: str) -> None:
    """AsyncAPI 3.0, Channel Object: `parameters` describes all of the address and nothing else."""
    channel = DOCUMENT["channels"][name]
    assert set(channel["parameters"]) == set(re.findall(r"\{(\w+)\}", channel["address"]))


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_every_event_has_a_message_and_a_schema_of_its_data(name: str) -> None:
    assert name in DOCUMENT["channels"]["deviceEvent"]["messages"]
    schema = DOCUMENT["components"]["schemas"][EVENT_TYPES[name].__name__]
    assert set(schema["properties"]) == set(EVENT_TYPES[name].__struct_fields__)


def test_published_events_have_the_fields_of_the_envelope() -> None:
    for seen in script([CardDrawn("9D"), DiceRead((1, 2, 3))]):
        sent = msgspec.json.decode(encode_envelope(seen))
        envelope = DOCUMENT["components"]["schemas"]["Wire"]
        assert set(envelope["required"]) <= set(sent) <= set(envelope["properties"])


def test_no_schema_is_an_untyped_object() -> None:
    """Each object names its fields or the type of its values, and no value is of any type."""
    untyped = []

    def walk(place: str, schema: Any) -> None:
        if schema == {}:
            untyped.append(place)
        elif isinstance(schema, dict):
            typed = {"properties", "additionalProperties", "$ref"} & set(schema)
            if schema.get("type") == "object" and not typed:
                untyped.append(place)
            for name, one in schema.get("properties", {}).items():
                walk(f"{place}.{name}", one)
            for key in ("items", "additionalProperties"):
                walk(f"{place}.{key}", schema.get(key))
            for key in ("anyOf", "allOf", "oneOf", "prefixItems"):
                for one in schema.get(key, ()):
                    walk(f"{place}.{key}", one)

    for name, schema in DOCUMENT["components"]["schemas"].items():
        walk(name, schema)
    for name, message in DOCUMENT["components"]["messages"].items():
        walk(name, message["payload"])
    assert not untyped


@pytest.mark.parametrize("name", RULESETS)
def test_the_schema_names_each_fact_of_a_game(name: str) -> None:
    """In the outcome of its results and in the detail of its rounds, over the corpus."""
    known = set(RULESETS[name].Facts.__struct_fields__)
    assert known <= set(DOCUMENT["components"]["schemas"]["RoundFacts"]["properties"])
    facts = {"outcome": 0, "detail": 0}
    for options in corpus.option_sets(name):
        ruleset = RULESETS[name](options_from(RULESETS[name], options))
        for line, _ in corpus.table(ruleset, name, options, at_length(60, 1000)):
            at = msgspec.json.decode(line)
            outcomes = [verdict["result"]["outcome"] for verdict in at["said"] if "result" in verdict]
            for written in (at["shown"]["detail"], *outcomes):
                facts_of(name, written)
                assert set(written) <= known
            facts["outcome"] += len(outcomes)
            facts["detail"] += 1
    assert min(facts.values()) > 5
