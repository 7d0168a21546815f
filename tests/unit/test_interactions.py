"""What was used lately in a conversation is that conversation's own."""

from __future__ import annotations

import pytest

from cofire.interactions import Interactions
from cofire.store.records import SpaceInfo
from cofire.types import SpaceRef

MINUTE = 60_000_000


def a_space(tenant: int, space: int) -> SpaceInfo:
    return SpaceInfo(
        tenant_id=tenant,
        space_id=space,
        ref=SpaceRef(tenant=f"t{tenant}", identity=f"i{space}"),
        revision=0,
        model=None,
        dimension=None,
        settings={},
    )


@pytest.mark.parametrize(
    ("tenant", "space", "interaction", "principal", "near"),
    [
        (1, 1, "chat", "mara", {1, 2}),
        (2, 1, "chat", "mara", set()),  # ids of spaces are a tenant's own
        (1, 2, "chat", "mara", set()),
        (1, 1, "other", "mara", set()),
        (1, 1, "chat", "ilse", set()),
    ],
)
def test_only_the_same_conversation_is_looked_back_on(
    tenant: int, space: int, interaction: str, principal: str, near: set[int]
) -> None:
    kept = Interactions()
    first = kept.together(a_space(1, 1), "chat", "mara", MINUTE, frozenset({1, 2}))
    assert first == frozenset()
    again = kept.together(
        a_space(tenant, space), interaction, principal, MINUTE + 1, frozenset({3})
    )
    assert again == near
