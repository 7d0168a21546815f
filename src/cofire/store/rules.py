"""By which rule a space learns: named in its settings, under "learning_rule".

A rule of `RULES` is stored by its name, any other with all its constants. A space that names none
learns by `COFIRE_RULE`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import bindparam, func, select

from cofire.dynamics.plasticity import COFIRE_RULE, RULES, Rule
from cofire.errors import ConfigurationError
from cofire.store.records import SpaceInfo
from cofire.store.schema import events, spaces
from cofire.store.session import Query, Session
from cofire.store.spaces import missing_space, set_settings

SETTING = "learning_rule"

SETTINGS = Query(
    lambda _: select(spaces.c.settings).where(
        spaces.c.tenant == bindparam("tenant"), spaces.c.id == bindparam("space")
    )
)
FIRST_EVENT = Query(
    lambda _: select(func.min(events.c.seq)).where(
        events.c.tenant == bindparam("tenant"), events.c.space == bindparam("space")
    )
)


def rule_of(settings: Mapping[str, Any]) -> Rule:
    """The rule that a space's settings name. Raises ConfigurationError if there is none such."""
    named = settings.get(SETTING)
    if named is None:
        return COFIRE_RULE
    if isinstance(named, str) and named in RULES:
        return RULES[named]
    try:
        return Rule(**named)
    except (TypeError, ValueError) as exc:
        raise ConfigurationError(
            f"the space's settings name a learning rule that this version of Cofire does not know: "
            f"{named!r}; it knows {', '.join(RULES)}"
        ) from exc


def described(rule: Rule) -> str | dict[str, Any]:
    """The rule as `rule_of` reads it."""
    if RULES.get(rule.name) == rule:
        return rule.name
    values = {part.name: getattr(rule, part.name) for part in fields(rule)}
    return {**values, "alpha": dict(rule.alpha)}


def rule_name(settings: Mapping[str, Any]) -> str:
    """The name of the rule that a space's settings name, known to this version or not."""
    named = settings.get(SETTING, COFIRE_RULE.name)
    return str(named.get("name", "")) if isinstance(named, Mapping) else str(named)


def read_rule(session: Session, space: SpaceInfo) -> Rule:
    """The rule that a space learns by now. Raises NotFoundError, ConfigurationError."""
    return rule_of(_settings(session, space))


def read_rule_or_default(session: Session, space: SpaceInfo) -> Rule:
    """The rule that a space learns by, or `COFIRE_RULE` if this version does not know it: no rule
    may stand in the way of forgetting. `check` tells of it. Raises NotFoundError."""
    try:
        return read_rule(session, space)
    except ConfigurationError:
        return COFIRE_RULE


def write_rule(session: Session, space: SpaceInfo, rule: Rule) -> None:
    """Names another rule in the space's settings."""
    settings = _settings(session, space)
    named = described(rule)
    if settings.get(SETTING, COFIRE_RULE.name) != named:
        set_settings(session, space, {**settings, SETTING: named})


def require_rule(session: Session, space: SpaceInfo, rule: Rule) -> None:
    """Sees to it that the space learns by this rule: one log, one rule, one fold.

    A space that has not learned anything yet takes it over. Raises ConfigurationError if the
    space learned by another one.
    """
    settings = _settings(session, space)
    known = rule_of(settings)
    if known is rule or known == rule:
        return
    if session.all(FIRST_EVENT, tenant=space.tenant_id, space=space.space_id)[0][0] is not None:
        raise ConfigurationError(
            f"{space.ref}: this space learned by the rule {known.name!r}, not by {rule.name!r} as "
            "given; replay its log by the new rule first, or learn by the former"
        )
    set_settings(session, space, {**settings, SETTING: described(rule)})


def adopt_rule(session: Session, space: SpaceInfo, settings: Mapping[str, Any]) -> bool:
    """Learns by the rule that another space's settings name, if this one names none and has learned
    nothing yet; whether it now learns by that rule. Raises ConfigurationError for one that is not
    known."""
    wanted, own = rule_of(settings), _settings(session, space)
    if rule_of(own) == wanted:
        return True
    first = session.all(FIRST_EVENT, tenant=space.tenant_id, space=space.space_id)[0][0]
    if SETTING in own or first is not None:
        return False
    set_settings(session, space, {**own, SETTING: described(wanted)})
    return True


def _settings(session: Session, space: SpaceInfo) -> dict[str, Any]:
    row = session.one(SETTINGS, tenant=space.tenant_id, space=space.space_id)
    if row is None:
        raise missing_space(space)
    settings: dict[str, Any] = json.loads(row[0])
    return settings
