"""The published contract is made from the code, and what we publish fits it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from helpers import script

from daemon.cli.main import main
from protocols.contract.events import EVENT_TYPES, CardDrawn, DiceRead
from protocols.contract.topics import encode_envelope

PUBLISHED = Path(__file__).parents[2] / "docs/asyncapi.json"
DOCUMENT: dict[str, Any] = json.loads(PUBLISHED.read_text(encoding="utf-8"))


def test_the_document_in_docs_is_what_the_code_says() -> None:
    """`feltd schema > docs/asyncapi.json` after a change of events, results or topics."""
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


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_every_event_has_a_message_and_a_schema_of_its_data(name: str) -> None:
    assert name in DOCUMENT["channels"]["deviceEvent"]["messages"]
    schema = DOCUMENT["components"]["schemas"][EVENT_TYPES[name].__name__]
    assert set(schema["properties"]) == set(EVENT_TYPES[name].__struct_fields__)


def test_what_we_publish_has_the_fields_of_the_envelope() -> None:
    for seen in script([CardDrawn("9D"), DiceRead((1, 2, 3))]):
        sent = msgspec.json.decode(encode_envelope(seen))
        envelope = DOCUMENT["components"]["schemas"]["Envelope"]
        assert set(envelope["required"]) <= set(sent) <= set(envelope["properties"])
