"""Do keys, the audit trail and requests say what they can? Part of `checking`."""

from __future__ import annotations

from sqlalchemy import and_, func, not_, or_, select

from cofire.store.requests import DONE, RUNNING
from cofire.store.schema import api_keys, audit, idempotency
from cofire.store.serving_records import OUTCOMES, SURFACES
from cofire.store.session import Query

BAD_KEYS = Query(
    lambda _: select(api_keys.c.name).where(
        or_(
            func.length(api_keys.c.hash) != 32,
            func.length(api_keys.c.uid) != 16,
            not_(api_keys.c.scopes.like('["%"]')),
            *(
                and_(names.is_not(None), not_(names.like("[%]")))
                for names in (api_keys.c.identities, api_keys.c.users, api_keys.c.projects)
            ),
        )
    )
)
BAD_ENTRIES = Query(
    lambda _: select(audit.c.time).where(
        or_(
            func.length(audit.c.uid) != 16,
            and_(*(audit.c.surface != name for name in SURFACES)),
            and_(*(audit.c.outcome != name for name in OUTCOMES)),
        )
    )
)
BAD_REQUESTS = Query(
    lambda _: select(idempotency.c.created).where(
        or_(
            and_(idempotency.c.state != RUNNING, idempotency.c.state != DONE),
            and_(
                idempotency.c.state == DONE,
                or_(idempotency.c.status.is_(None), idempotency.c.response.is_(None)),
            ),
            idempotency.c.expires <= idempotency.c.created,
        )
    )
)
OF_TENANTS = (
    ("api-key", "API keys that cannot be used", BAD_KEYS),
    ("audit", "entries of the audit trail with impossible fields", BAD_ENTRIES),
    ("request", "requests with impossible fields", BAD_REQUESTS),
)
"""What is asked of a tenant where the database keeps tenants apart, and else of all."""
