"""A registry: names to classes, with plug-ins."""

from __future__ import annotations

import pytest

from querycloak.errors import UsageError
from querycloak.registry import Registry


@pytest.mark.parametrize(
    ("place", "fault"), [("nowhere_at_all:Nope", "ModuleNotFoundError"), ("json:Nope", "AttributeError")]
)
def test_a_plug_in_that_cannot_be_loaded_is_named(place, fault):
    table = Registry(kind="protection method", group="querycloak.none", built_in={"whole": "json:dumps"})
    table.__dict__["_table"] = {"whole": "json:dumps", "broken": place}
    with pytest.raises(
        UsageError, match=rf"the protection method `broken` is a plug-in .* \({fault}\)"
    ) as caught:
        table.get("broken")
    assert place.partition(":")[0] in caught.value.hint
    assert table.get("whole")({}) == "{}"
