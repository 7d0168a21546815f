"""Deleting for good, and what proves it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from cofire.errors import InputError
from cofire.memory import Memory
from cofire.server.actions import Action
from cofire.server.rest import bodies, examples, values
from cofire.server.rest.asking import After, Asked, Key, Limit, answers, paged
from cofire.types import Deletion

router = APIRouter(
    prefix="/v1", tags=["Deletion"], generate_unique_id_function=lambda route: route.name
)

OWN = "own"


@router.post(
    "/forget",
    response_model=values.Deletion,
    **answers(examples.DELETION, 404, 409, description="A receipt, without content."),
)
async def forget(body: bodies.Forget, asked: Asked, key: Key = None) -> Response:
    """Delete memories for good, with everything that is derived from them or repeats them.

    Say what in one of three ways: `ids`; conditions and the `scope` they hold in; or `everything`
    of the agent's own memories (or of the project that `scope` names), which is answered by a 409
    with the count and a `token`: sent again with it as `confirm`, within ten minutes, it is done.
    """

    def verb(memory: Memory) -> Deletion:
        chosen = {
            name: getattr(body, name) for name in bodies.SELECTORS if name in body.model_fields_set
        }
        if body.everything:
            if chosen or body.ids is not None:
                raise InputError("say what to forget in one way: ids, conditions or everything")
            project = None if body.scope in (None, OWN) else body.scope
            return memory.forget(
                everything=True, project=project, confirm=body.confirm, dry_run=body.dry_run
            )
        return memory.forget(
            body.ids, scope=body.scope, confirm=body.confirm, dry_run=body.dry_run, **chosen
        )

    return await asked.write(Action.FORGET, verb, key=key, count=lambda gone: gone.memories)


@router.get(
    "/receipts",
    response_model=values.DeletionPage,
    **answers(examples.one_page(examples.DELETION), description="Newest first."),
)
async def receipts(
    asked: Asked,
    limit: Limit = 50,
    after: After = None,
) -> Response:
    """The receipts of what was deleted from these memories, newest first."""
    return await asked.read(
        Action.RECEIPTS,
        lambda memory: memory.receipts(limit=10 * values.MOST),
        paged(limit, after),
        count=len,
    )


@router.get(
    "/receipts/{id}/verification",
    response_model=values.Verification,
    **answers(examples.VERIFICATION, 404, description="What is left; nothing, if all is well."),
)
async def verify(
    id: Annotated[str, Path(max_length=100, description="A receipt's id.", examples=[examples.B])],
    asked: Asked,
) -> Response:
    """Look again whether all that a receipt names is gone."""
    return await asked.read(Action.VERIFY, lambda memory: memory.verify(id))
