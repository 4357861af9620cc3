"""Problems that are not independent: near copies of one another, parts of one question, items that stand in two sets.

The rule: two problems belong together when their word 4-grams (runs of letters or digits, lower case) have a Jaccard
index of at least one half, and whatever is linked through a third problem belongs together too.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import combinations

GRAM = 4
ALIKE = 0.5
WORD = re.compile(r"[a-z0-9]+")


def clusters(problems: Mapping[str, str]) -> dict[str, str]:
    """The cluster of each problem, named by its first member; `problems` maps ids to texts."""
    leader = {name: name for name in problems}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    order = {name: place for place, name in enumerate(problems)}
    for one, other in alike(problems):
        first, second = sorted((find(one), find(other)), key=order.__getitem__)
        leader[second] = first
    return {name: find(name) for name in problems}


def alike(problems: Mapping[str, str]) -> list[tuple[str, str]]:
    """Every pair of problems whose 4-grams have a Jaccard index of at least ALIKE."""
    grams = {name: grams_of(text) for name, text in problems.items()}
    holders: dict[str, list[str]] = defaultdict(list)
    for name, found in grams.items():
        for gram in found:
            holders[gram].append(name)
    shared: Counter[tuple[str, str]] = Counter()
    for names in holders.values():
        shared.update(combinations(names, 2))
    return [
        pair
        for pair, common in shared.items()
        if common >= ALIKE * (len(grams[pair[0]]) + len(grams[pair[1]]) - common)
    ]


def grams_of(text: str) -> frozenset[str]:
    """The word 4-grams of a text; of a shorter one, the whole of it."""
    words = WORD.findall(text.lower())
    return frozenset(" ".join(words[i : i + GRAM]) for i in range(max(1, len(words) - GRAM + 1)))
