"""Atamaia's search (sections 3.7 and 6.1 of its paper), by the constants of
`recipes.AtamaiaRecipe`.

    shortlist   the 200 best by full text
    blend       s = 0.2 · FTS rank + 0.8 · cosine
    boosts      s + max(s, 0) · (b_i · importance + b_r · recency + b_h · strength to other hits)
    expansion   what links over 0.7 lead to from the best hits

Choices where the paper is silent:

- *FTS rank* is BM25 divided by the best of all spaces. A question none of whose words occurs finds
  nothing, however close a vector is: that is the letter of a full-text shortlist.
- *Boosts* are named and not defined; their form is `papers.atamaia_boosted`.
- *Hits* that lend their strength are the whole shortlist; expansion starts from the best of it,
  after boosts.
- *What expansion brings* gets a score by the same formula, with the FTS rank it has. So it competes
  with the hits and is put before none of them; the paper includes it without saying where.
- *Filters* exclude from expansion, too. Links to a long text that was cut into segments are not
  followed into them.

EchoMCP, the predecessor, differs in how strengths are learned (rule "echomcp": S ← min(1, S + 0.1))
and not in its search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cofire.dynamics import activation, papers
from cofire.dynamics.arrays import F64, Bool, Rows
from cofire.dynamics.papers import AtamaiaBoosts
from cofire.dynamics.ranking import best
from cofire.retrieval.candidates import Scored, Searched
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked
from cofire.retrieval.recipes import ATAMAIA_RECIPE, AtamaiaRecipe
from cofire.retrieval.survey import Survey, scored, survey
from cofire.store.records import LINK_CODES
from cofire.types import Path


def atamaia(searched: Searched, asked: Asked, profile: Profile) -> list[Scored]:
    """The shortlist and what expansion adds. `Profile.depth` is the length of the shortlist."""
    recipe = profile.recipe if isinstance(profile.recipe, AtamaiaRecipe) else ATAMAIA_RECIPE
    seen = survey(searched, asked, profile.bm25, compare=False)
    shortlist, _ = best(seen.only(seen.words, seen.words > 0.0), *seen.ties, profile.depth)
    hits = np.zeros(seen.size, np.bool_)
    hits[shortlist] = True
    strength = _strength(seen, hits, recipe)
    boosted = np.full(seen.size, -np.inf)
    boosted[shortlist] = _weigh(seen, shortlist, strength, asked, recipe).boosted
    selected, _ = best(boosted, *seen.ties, recipe.expand_from)
    places = np.flatnonzero(hits | _expanded(seen, selected, recipe))
    weighed = _weigh(seen, places, strength, asked, recipe)
    owed = np.zeros(seen.size, np.float64)
    owed[places] = recipe.boosts.hebbian * np.maximum(weighed.blend, 0.0)
    return scored(
        seen,
        places,
        weighed.columns,
        profile,
        dense=np.zeros(len(places), np.bool_),
        lexical=hits[places],
        paths=lambda place: _paths(seen, place, hits, owed, recipe),
    )


@dataclass(frozen=True, slots=True)
class _Weighed:
    """Some memories' scores before and after boosts, and their terms."""

    blend: F64
    boosted: F64
    columns: dict[str, F64]


def _weigh(
    seen: Survey, places: Rows, strength: F64, asked: Asked, recipe: AtamaiaRecipe
) -> _Weighed:
    cosine = seen.cosine_of(places, asked.vector)
    text = seen.relative_words()[places]
    blend = papers.atamaia_blend(text, cosine, text_weight=recipe.text_weight)
    known = (
        seen.column("importance")[places],
        asked.now - seen.column("time")[places],
        strength[places],
    )
    important, recent, linked = (
        papers.atamaia_boosted(blend, *known, alone) - blend for alone in _alone(recipe.boosts)
    )
    return _Weighed(
        blend,
        papers.atamaia_boosted(blend, *known, recipe.boosts),
        {
            "similarity": cosine,
            "bm25": text,
            "importance": important,
            "recency": recent,
            "linked": linked,
        },
    )


def _alone(boosts: AtamaiaBoosts) -> tuple[AtamaiaBoosts, AtamaiaBoosts, AtamaiaBoosts]:
    """Each boost at a weight of 1 and the others at 0: what it adds is the value of its term."""
    none = replace(boosts, importance=0.0, recency=0.0, hebbian=0.0)
    return replace(none, importance=1.0), replace(none, recency=1.0), replace(none, hebbian=1.0)


def _strength(seen: Survey, hits: Bool, recipe: AtamaiaRecipe) -> F64:
    """Strongest link of each memory to another hit."""
    conductance = _conductance(recipe)
    return np.concatenate(
        [
            papers.strength_to_hits(graph.adjacency(), np.flatnonzero(hits[start:end]), conductance)
            for graph, (start, end) in zip(seen.graphs, seen.parts(), strict=True)
        ]
    )


def _expanded(seen: Survey, selected: Rows, recipe: AtamaiaRecipe) -> Bool:
    """Mask of what strong links lead to from `selected`."""
    conductance = _conductance(recipe)
    reached = np.zeros(seen.size, np.bool_)
    for graph, (start, end) in zip(seen.graphs, seen.parts(), strict=True):
        here = selected[(selected >= start) & (selected < end)] - start
        adjacent = papers.link_adjacent(
            graph.adjacency(), here, graph.ties, conductance, threshold=recipe.expand_over
        )
        reached[start + adjacent.rows] = True
    return reached & seen.allowed


def _conductance(recipe: AtamaiaRecipe) -> F64:
    return activation.conducting({LINK_CODES[link]: 1.0 for link in recipe.links})


def _paths(seen: Survey, place: int, hits: Bool, owed: F64, recipe: AtamaiaRecipe) -> list[Path]:
    """The hits that a memory is linked to. The strongest link gave the boost, and each is as much
    of it as its strength."""
    links = seen.links_of(place)
    conducts = (_conductance(recipe)[links.type] > 0.0) & hits[links.target]
    conducts &= links.target != place
    return [
        seen.path(int(links.target[at]), place, int(links.type[at]),
                  float(owed[place] * links.strength[at]))
        for at in np.flatnonzero(conducts).tolist()
    ]  # fmt: skip
