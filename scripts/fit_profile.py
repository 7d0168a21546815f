"""Fit the default profile's constants on every conversation of a LoCoMo file and print them.

What a release ships; the figures that count come from `cofire evaluate locomo --cross-validate`,
where no constant has seen the conversation that is scored.
"""

from __future__ import annotations

import argparse

from cofire.evaluation.benches import remembered
from cofire.evaluation.tuning import best_on_all
from cofire.interchange.locomo import load
from cofire.retrieval.profiles import asked_of, profile_named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", help="LoCoMo JSON")
    parser.add_argument("--corrections", help="the audited answer key")
    parser.add_argument("--profile", default="cofire")
    parser.add_argument("--slept", action="store_true", help="consolidate every memory before")
    arguments = parser.parse_args()
    conversations, _ = load(arguments.path, corrections=arguments.corrections)
    with remembered(
        conversations, None, lambda done, total: None, slept=arguments.slept
    ) as benches:
        profile = best_on_all(
            benches, asked_of(profile_named(arguments.profile), slept=arguments.slept)
        )
    print(f"bm25 {profile.bm25}, session {profile.session_bm25}, window {dict(profile.window)}")
    print(
        f"depth {profile.depth}, seeds {profile.seeds}, fan {profile.fan}, "
        f"days after {profile.days_after}"
    )
    for term, weight in profile.weights.items():
        print(f'    "{term}": {weight:.2f},')


if __name__ == "__main__":
    main()
