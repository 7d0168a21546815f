"""HeLa-Mem's recall (arXiv 2604.16839, section 3.4); the constants are `recipes.HelaMemRecipe`'s.

    S_base = (sim + α · keyword_match) · exp(-Δt / τ)          every memory
    S_j    = S_base_j + β Σ_{i: S_base_i > θ} S_base_i · w_ij  one hop, learned and temporal links
    R      = Top-k(S_base) ∪ Top-m(S among the rest)

Choices where the paper is silent:

- *Keywords* are the question's terms (stemmed, without stop words), and a memory has those that
  occur in it; the paper extracts keywords with a language model.
- *Order*: the paper's R is a set. Ours goes by S, the one score that both paths have, so scores
  fall as everywhere. The trace tells what spreading gave.
- *How many*: k = 10 and m = 5 make 15. Who asks for fewer gets the best of these 15 by S; for
  n > 15 k grows to n - m and m stays, as on LongMemEval-S, where k is 15 and m no larger.
- *No vector*: a memory (or a question) without one has sim = 0, not the ½ of a cosine of 0.
- *Filters*: what they exclude neither spreads nor is spread to.
- The five semantic records of the paper are recalled with the rest once they are memories.
"""

from __future__ import annotations

import numpy as np

from cofire.dynamics import activation, papers
from cofire.dynamics.arrays import F64, Rows
from cofire.retrieval.candidates import Scored, Searched
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked
from cofire.retrieval.recipes import HELA_MEM_RECIPE, HelaMemRecipe
from cofire.retrieval.survey import Survey, scored, survey
from cofire.store.records import LINK_CODES
from cofire.types import Path


def hela_mem(searched: Searched, asked: Asked, profile: Profile) -> list[Scored]:
    """What both paths bring, scored by S. `Profile.depth` is how many they bring together."""
    recipe = profile.recipe if isinstance(profile.recipe, HelaMemRecipe) else HELA_MEM_RECIPE
    seen = survey(searched, asked, profile.bm25)
    keywords = papers.hela_mem_keywords(seen.matched.astype(np.float64), seen.asked)
    age = asked.now - seen.column("time")
    base = _base(seen, keywords, age.astype(np.float64), recipe, tau_days=recipe.tau_days)
    spread = _spread(seen, base, recipe)
    paths = papers.dual_path(
        base,
        spread,
        seen.ties,
        k=max(recipe.base, profile.depth - recipe.flips),
        m=recipe.flips,
        raised_only=recipe.raised_only,
    )
    places: Rows = np.sort(np.concatenate([paths.base, paths.flipped]))
    young = _base(seen, keywords, age.astype(np.float64), recipe, tau_days=None)
    given = spread[places] - base[places]
    columns = {
        "similarity": seen.cosine[places],
        "embedded": seen.compared[places].astype(np.float64),
        "keywords": keywords[places],
        "age": young[places] - base[places],
        "passed_on": given / recipe.beta if recipe.beta > 0.0 else np.zeros_like(given),
    }
    by_itself = np.isin(places, paths.base) | (given <= 0.0)
    return scored(
        seen,
        places,
        columns,
        profile,
        dense=by_itself & seen.compared[places],
        lexical=by_itself & (seen.matched[places] > 0),
        paths=lambda place: _paths(seen, place, base, recipe),
    )


def _base(
    seen: Survey, keywords: F64, age: F64, recipe: HelaMemRecipe, *, tau_days: float | None
) -> F64:
    """S_base by place, -inf for what may not be recalled."""
    nothing = -1.0 if recipe.mapped else 0.0  # the cosine that is no similarity at all
    base = papers.hela_mem_base(
        np.where(seen.compared, seen.cosine, nothing),
        keywords,
        age,
        keyword_weight=recipe.keyword_weight,
        tau_days=tau_days,
        mapped=recipe.mapped,
    )
    return seen.only(base, seen.allowed)


def _spread(seen: Survey, base: F64, recipe: HelaMemRecipe) -> F64:
    conductance = _conductance(recipe)
    parts = [
        activation.hela_mem(
            graph.adjacency(),
            base[start:end],
            beta=recipe.beta,
            theta=recipe.theta,
            conductance=conductance,
        )
        for graph, (start, end) in zip(seen.graphs, seen.parts(), strict=True)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _conductance(recipe: HelaMemRecipe) -> F64:
    return activation.conducting({LINK_CODES[link]: 1.0 for link in recipe.links})


def _paths(seen: Survey, place: int, base: F64, recipe: HelaMemRecipe) -> list[Path]:
    """Who gave to one memory, and how much."""
    links = seen.links_of(place)
    source = base[links.target]
    gave = (_conductance(recipe)[links.type] > 0.0) & (source > recipe.theta)
    return [
        seen.path(int(links.target[at]), place, int(links.type[at]),
                  recipe.beta * float(source[at] * links.strength[at]))
        for at in np.flatnonzero(gave).tolist()
    ]  # fmt: skip
