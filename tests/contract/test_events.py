"""The vocabulary by itself: what no event may carry."""

from collections.abc import Iterator

import pytest
from msgspec import inspect

from protocols.contract.events import (
    EVENT_TYPES,
    MOST,
    ButtonsCounted,
    Event,
    MachineMeters,
    UnknownEvent,
    WagerPlaced,
    decode_data,
    encode_data,
    type_of,
)


def whole_numbers(kind: inspect.Type) -> Iterator[inspect.IntType]:
    """All that stand in a type, however deep."""
    match kind:
        case inspect.IntType():
            yield kind
        case inspect.Metadata(type=inner) | inspect.VarTupleType(item_type=inner):
            yield from whole_numbers(inner)
        case inspect.UnionType(types=types):
            for one in types:
                yield from whole_numbers(one)
        case inspect.DictType(key_type=key, value_type=value):
            yield from (*whole_numbers(key), *whole_numbers(value))
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from whole_numbers(field.type)
        case _:
            pass


@pytest.mark.parametrize("type_name", sorted(EVENT_TYPES))
def test_every_number_is_one_that_every_reader_of_json_keeps(type_name: str) -> None:
    described = inspect.type_info(EVENT_TYPES[type_name])
    assert isinstance(described, inspect.StructType)
    for field in described.fields:
        for number in whole_numbers(field.type):
            assert number.le is not None, field.name
            assert number.le <= MOST, field.name
            low = number.ge if number.ge is not None else number.gt
            assert low is not None, field.name
            assert low >= -MOST, field.name


LARGE: list[Event] = [
    WagerPlaced(seat=1, bet="small", amount=MOST),
    ButtonsCounted(count=MOST),
    ButtonsCounted(count=4, overtaken=MOST),
]


@pytest.mark.parametrize("event", LARGE)
@pytest.mark.parametrize("digits", [0, 20, 4299, 4300, 5000])
def test_a_number_beyond_that_is_refused_as_any_malformed_event(event: Event, digits: int) -> None:
    """A wager of 4300 digits was one that the rules could not reckon with, nor the consumer get past."""
    data = encode_data(event)
    assert decode_data(type_of(event), data) == event
    beyond = "9" * digits or str(MOST + 1)
    with pytest.raises(UnknownEvent, match=type_of(event)):
        decode_data(type_of(event), data.replace(str(MOST).encode(), beyond.encode()))


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_meter_is_no_larger_either(sign: str) -> None:
    meters = {"coin_in": int(f"{sign}{MOST}")}
    assert decode_data("machine.meters", encode_data(MachineMeters(meters))) == MachineMeters(meters)
    with pytest.raises(UnknownEvent):
        decode_data("machine.meters", f'{{"meters":{{"coin_in":{sign}{MOST + 1}}}}}'.encode())
