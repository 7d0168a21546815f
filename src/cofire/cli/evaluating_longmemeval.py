"""`evaluate longmemeval` without an answerer: does recall bring back what holds the answer?"""

from __future__ import annotations

from cofire.cli.options import Common, numbers, words
from cofire.errors import InputError


def retrieved(
    common: Common,
    *,
    path: str,
    profiles: str | None,
    k: str | None,
    slept: bool,
    limit: int | None,
    jobs: int,
    json: str | None,
) -> None:
    """Print the retrieval figures of a file of LongMemEval; see `evaluate_retrieval`.

    Raises InputError (numbers that mean nothing, a profile that does not exist), NotFoundError,
    FormatError.
    """
    if jobs < 1:
        raise InputError(f"--jobs takes a whole number from 1, not {jobs}")
    if limit is not None and limit < 1:
        raise InputError(f"--limit takes a whole number from 1, not {limit}")
    from cofire.cli.progress import progress
    from cofire.cli.telling import tell
    from cofire.evaluation.qa.retrieval import KS, PROFILES, evaluate_retrieval
    from cofire.evaluation.qa.retrieval_report import render_retrieval, retrieval_figures

    with progress("Haystacks", quiet=json == "-") as bar:
        result = evaluate_retrieval(
            path,
            profiles=PROFILES if profiles is None else words(profiles, "--profiles"),
            ks=KS if k is None else numbers(k, "--k"),
            slept=slept,
            limit=limit,
            jobs=jobs,
            embedder=common.embedder,
            progress=bar,
        )
    tell(render_retrieval(result), retrieval_figures(result), json)
