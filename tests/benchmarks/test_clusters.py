"""Which problems belong together: the rule on made texts, and on the real sets against the reference clustering."""

import json
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from delaysim.benchmarks.clusters import clusters, grams_of
from delaysim.benchmarks.sets import SIX

STEM = "A train leaves the station at noon and travels north at sixty miles per hour until it stops."


def partition(found):
    members = defaultdict(set)
    for name, cluster in found.items():
        members[cluster].add(name)
    return {frozenset(names) for names in members.values()}


def real_problems(shared):
    lines = [line for name in SIX for line in (shared / "data" / f"{name}.jsonl").read_text().splitlines()]
    return {row["id"]: row["problem"] for row in map(json.loads, lines)}


def test_the_real_sets_cluster_as_the_reference_does(shared):
    """3191 rows in 3109 clusters; 25 of AMC23's 40 problems stand in Gaokao2023en too."""
    found = clusters(real_problems(shared))
    assert partition(found) == partition(json.loads((shared / "data" / "clusters.json").read_text()))
    assert len(set(found.values())) == 3109
    amc = {found[name] for name in found if name.startswith("amc23")}
    assert sum(found[name] in amc for name in found if name.startswith("gaokao")) == 25
    sizes = {name: len({found[i] for i in found if i.startswith(name)}) for name in ("olympiad", "minerva")}
    assert sizes == {"olympiad": 647, "minerva": 243}


def test_parts_of_one_question_belong_together():
    found = clusters(
        {"a": f"{STEM} How far is it?", "b": f"{STEM} How long did it take?", "c": "What is two plus two?"}
    )
    assert partition(found) == {frozenset("ab"), frozenset("c")}


def test_what_is_linked_through_a_third_belongs_together():
    words = [f"w{i}" for i in range(60)]
    texts = {name: " ".join(words[start : start + 30]) for name, start in (("a", 0), ("b", 9), ("c", 18))}
    assert partition(clusters(texts)) == {frozenset("abc")}
    assert partition(clusters({"a": texts["a"], "c": texts["c"]})) == {frozenset("a"), frozenset("c")}


def test_notation_and_case_do_not_separate():
    one, other = "Let $x+y=3$ and let $z$ be the larger root.", "let x + y = 3, and LET z be the larger root"
    assert len(set(clusters({"a": one, "b": other}).values())) == 1
    assert grams_of("One, two!") == {"one two"}


@given(st.lists(st.sampled_from([STEM, STEM.upper(), "Another text of five words", "short"]), max_size=6), st.randoms())
def test_the_partition_does_not_depend_on_order(texts, random):
    named = {str(i): text for i, text in enumerate(texts)}
    shuffled = dict(random.sample(sorted(named.items()), len(named)))
    assert partition(clusters(named)) == partition(clusters(shuffled))
