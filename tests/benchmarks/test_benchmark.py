"""The evaluation path, answered by scripts: all six real sets, resumption at every cut, and what a row says."""

import json
from pathlib import Path

import pytest
from notation import Mistaken, Oracle

from delaysim.benchmarks.load import Benchmark, Item, load_benchmarks, names_of
from delaysim.errors import RunFailed, UserError
from delaysim.grading import Grader, Verdict, make_gold
from delaysim.run.benchmark import ROWS, Plan, RowFile, evaluate_benchmarks, opened, plan_identity
from delaysim.scorecard import scorecard

GOLD_DEFECTS = {
    "gaokao/part1.en_zh.json#167": "3/10",
    "gaokao/part1.en_zh.json#192": "A",
    "gaokao/part2.en_zh.json#349": "901",
}
"""Golds that are empty or wrong in the files, and the answer that is right."""


def made(name="sums", count=7, first=0):
    items = [Item(f"{name}/{i}", f"What is {i} + 1?", make_gold(str(i + 1)), f"c{i // 2}") for i in range(first, count)]
    return Benchmark(name, f"digest of {name}", tuple(items))


def evaluated(folder, benchmarks, respondent, plan, grader=None):
    with grader or Grader() as grader, opened(folder, plan_identity(plan, benchmarks)) as rows:
        evaluate_benchmarks(benchmarks, respondent, grader, plan, rows, lambda *_: None)
    return rows.rows


@pytest.mark.slow
def test_an_oracle_in_another_notation_has_every_item_of_the_six_sets_right(shared, tmp_path):
    benchmarks = load_benchmarks(names_of("all"), shared / "data")
    rows = evaluated(tmp_path, benchmarks, Oracle(), Plan(3, batch=256))
    assert len(rows) == 4 * 3191
    assert [(row["problem"], row["answer"]) for row in rows if row["status"] != "correct"] == []
    spellings = [{row["answer"] for row in rows[i : i + 4]} for i in range(0, len(rows), 4)]
    assert sum(len(found) > 1 for found in spellings) > 2800, "the oracle repeats itself"
    assert all(len({row["class"] for row in rows[i : i + 4]}) == 1 for i in range(0, len(rows), 4))
    card = scorecard(rows)
    assert {mean["average"] for mean in card["means"].values()} == {1.0}
    assert card["means"]["deduplicated"]["clusters"] == 3109


def test_only_the_named_gold_defects_refuse_their_own_text(shared):
    items = [item for b in load_benchmarks(names_of("all"), shared / "data") for item in b.items]
    with Grader() as grader:
        verdicts = [grader.grade(item.gold, rf"It is \boxed{{{item.gold.answer}}}.") for item in items]
        refused = {i.id for i, verdict in zip(items, verdicts, strict=True) if verdict.status != "correct"}
        assert refused == set(GOLD_DEFECTS)
        right = {item.id: item.gold for item in items if item.id in GOLD_DEFECTS}
        for name, answer in GOLD_DEFECTS.items():
            assert grader.grade(right[name], rf"\boxed{{{answer}}}").status == "correct"


def test_a_row_says_what_was_said(tmp_path):
    rows = evaluated(tmp_path, [made(count=5)], Mistaken(), Plan(4))
    assert len(rows) == 25
    greedy, right, wrong, silent, cut = rows[5:10]
    assert greedy == {
        "set": "sums", "problem": "sums/1", "cluster": "c0", "response": 0, "greedy": True, "score": 1.0,
        "status": "correct", "method": "boxed", "answer": "2", "class": 0, "n_tokens": len(greedy["tokens"]),
        "truncated": False, "tokens": greedy["tokens"],
    }  # fmt: skip
    assert [(r["response"], r["greedy"], r["status"], r["score"], r["class"], r["truncated"]) for r in rows[6:10]] == [
        (1, False, "correct", 1.0, 0, False),
        (2, False, "wrong", 0.0, 1, False),
        (3, False, "no_answer", 0.0, None, False),
        (4, False, "truncated", 0.0, None, True),
    ]
    assert (right["n_tokens"], wrong["n_tokens"], silent["n_tokens"], cut["n_tokens"]) == (greedy["n_tokens"], 7, 5, 9)
    assert [("tokens" in row) for row in rows] == [i < 20 for i in range(25)]
    card = scorecard(rows)["sets"]["sums"]
    assert (card["average"], card["greedy"], card["majority"], card["truncated"]) == (0.25, 1.0, 0.5, 0.25)


def test_the_file_holds_the_rows(tmp_path):
    rows = evaluated(tmp_path, [made(), made("more", 3)], Mistaken(), Plan(2, batch=4))
    assert [json.loads(line) for line in (tmp_path / ROWS).read_text().splitlines()] == rows
    assert [row["set"] for row in rows] == ["sums"] * 21 + ["more"] * 9


def test_cut_anywhere_and_resumed_the_bytes_are_the_same(tmp_path):
    """Every length of file a kill can leave: whole batches are kept, a torn one is answered again."""
    benchmarks, plan = [made(count=5), made("more", 3)], Plan(2, batch=4)
    evaluated(tmp_path / "whole", benchmarks, Mistaken(), plan)
    whole = (tmp_path / "whole" / ROWS).read_bytes()
    for size in [*range(0, len(whole), 97), len(whole) - 1, len(whole)]:
        folder = tmp_path / str(size)
        with opened(folder, plan_identity(plan, benchmarks)):
            (folder / ROWS).write_bytes(whole[:size])
        asked = Counting()
        rows = evaluated(folder, benchmarks, asked, plan)
        assert (folder / ROWS).read_bytes() == whole
        assert len(rows) == 24
        done = whole[:size].count(b"\n")
        assert asked.batches == 5 - sum(done >= edge for edge in (6, 12, 15, 21, 24))


class Counting(Mistaken):
    """Counts the batches it is asked for."""

    batches = 0

    def respond(self, items, repeat, keys):
        self.batches += keys is None
        return super().respond(items, repeat, keys)


def test_noise_keys_are_of_set_problem_and_response(tmp_path):
    """Whatever the batch and however many problems: the same problem has the same keys."""

    def keys_of(folder, plan, benchmarks):
        seen = {}

        class Recording(Oracle):
            def respond(self, items, repeat, keys):
                if keys is not None:
                    asked = [(item.id, r) for item in items for r in range(repeat)]
                    seen.update(zip(asked, keys, strict=True))
                return super().respond(items, repeat, keys)

        evaluated(folder, benchmarks, Recording(), plan)
        return seen

    few = keys_of(tmp_path / "few", Plan(2, problems=3, batch=1), [made()])
    many = keys_of(tmp_path / "many", Plan(4, batch=64), [made("more", 9), made()])
    assert len(set(many.values())) == len(many) == 4 * 16
    assert few == {key: many[key] for key in few}
    assert len(few) == 6


def test_another_evaluation_is_not_written_over(tmp_path):
    evaluated(tmp_path, [made()], Oracle(), Plan(2))
    with pytest.raises(UserError, match=r"holds another evaluation \(samples differ\): give another --out"):
        evaluated(tmp_path, [made()], Oracle(), Plan(4))
    with pytest.raises(UserError, match=r"\(sets, clusters differ\)"):
        evaluated(tmp_path, [Benchmark("sums", "changed", made(count=6).items)], Oracle(), Plan(2))


def test_two_at_once_are_refused(tmp_path):
    with opened(tmp_path, {}), pytest.raises(UserError, match="another process is writing"), opened(tmp_path, {}):
        pass


class Failing(Grader):
    """Times out on every `every`-th response."""

    def __init__(self, every):
        super().__init__()
        self.every = every

    def grade_many(self, items, mode="strict"):
        found = super().grade_many(items, mode)
        return [Verdict("timeout", 0) if i % self.every == 0 else v for i, v in enumerate(found)]


def test_grading_that_keeps_failing_ends_the_evaluation(tmp_path):
    """Above 1 % and from the tenth failure on; below, they are wrong answers that are counted."""
    with pytest.raises(RunFailed, match=r"the grading of 10 of 500 responses timed out or died"):
        evaluated(tmp_path / "many", [made(count=600)], Oracle(), Plan(0, batch=50), Failing(50))
    rows = evaluated(tmp_path / "few", [made(count=600)], Oracle(), Plan(0, batch=600), Failing(120))
    card = scorecard(rows)["sets"]["sums"]
    assert (card["ungraded"], card["greedy"]) == (5, pytest.approx(595 / 600))


def test_a_row_file_keeps_whole_batches_only(tmp_path):
    path = Path(tmp_path / ROWS)
    path.write_text('{"a":1}\n{"a":2}\n{"a":')
    rows = RowFile(path)
    assert rows.skip(1)
    assert not rows.skip(2)
    rows.append([{"a": 3}])
    assert path.read_text() == '{"a":1}\n{"a":3}\n'
    assert rows.rows == [{"a": 1}, {"a": 3}]
