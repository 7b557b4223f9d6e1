from foretell.discovery.responses import EventKeyset, FoundTag, MarketTypes
from foretell.edge.codec import json_response


def test_absent_values_are_left_out() -> None:
    assert json_response(EventKeyset(events=[])).content == b'{"events":[]}'
    later = EventKeyset(events=[], next_cursor="x")
    assert json_response(later).content == b'{"events":[],"next_cursor":"x"}'


def test_names_are_camel_case_except_where_clients_expect_others() -> None:
    assert json_response(MarketTypes(market_types=[])).content == b'{"marketTypes":[]}'
    found = FoundTag(id="1", label="World", slug="world", event_count=2)
    assert json_response(found).content == (
        b'{"id":"1","label":"World","slug":"world","event_count":2}'
    )
