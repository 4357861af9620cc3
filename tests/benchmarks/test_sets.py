"""Reading sets: the real files and what is refused of them, a user's own file, and the hub on a stand-in."""

import json
import shutil
from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import parquet

from delaysim.benchmarks.load import from_hub, load_benchmarks, names_of, read_set
from delaysim.benchmarks.sets import SETS, SIX, Hub
from delaysim.errors import UserError
from delaysim.grading import Grader

COUNTS = {"gsm8k": 1319, "math500": 500, "minerva": 272, "olympiad": 675, "amc23": 40, "gaokao2023en": 385}


def refusal(call, *arguments, **named):
    with pytest.raises(UserError) as error:
        call(*arguments, **named)
    message = str(error.value)
    assert "\n" not in message
    return message


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows(count, first=0):
    return [{"id": f"r{i}", "problem": f"What is {i}?", "answer": str(i)} for i in range(first, first + count)]


def test_all_is_the_six():
    assert names_of("all") == list(SIX) == list(COUNTS)
    assert names_of("amc23, own.jsonl") == ["amc23", "own.jsonl"]


def test_the_real_sets_have_their_counts_and_bytes(shared):
    manifest = json.loads((shared / "data" / "MANIFEST.json").read_text())
    for name in (*SIX, "gsm8k_train"):
        assert (SETS[name].rows, SETS[name].sha256) == (manifest[name]["rows"], manifest[name]["sha256"])
        assert len(read_set(SETS[name], shared / "data")) == SETS[name].rows


def test_golds_are_typed_and_patched(shared):
    items = {item.id: item for b in load_benchmarks(names_of("all"), shared / "data") for item in b.items}
    assert len(items) == 3191
    assert items["olympiad/1618"].gold.type == "multiset"
    assert items["gaokao/part1.en_zh.json#167"].gold.patched is not None
    assert sum(item.gold.type == "sci" for name, item in items.items() if name.startswith("minerva")) == 58
    assert {item.gold.tolerance for item in items.values()} == {0.0, 0.1}


def test_a_tolerance_belongs_to_one_set(shared):
    both = load_benchmarks(["minerva", "amc23"], shared / "data", rel_tol={"minerva": 0.01})
    assert [{item.gold.rel_tol for item in b.items} for b in both] == [{0.01}, {0.0}]
    message = refusal(load_benchmarks, ["amc23"], shared / "data", rel_tol={"minerva": 0.01})
    assert message == "--rel-tol minerva: not among the sets; choose one of amc23"


def test_numbers_are_exact_but_where_a_row_or_the_user_says(shared):
    """4.2 +- 0.1 of one OlympiadBench row; Minerva's 4.5e33 to a hundredth only where asked for."""
    sets = {b.name: b for b in load_benchmarks(["olympiad", "minerva"], shared / "data")}
    (allowed,) = [item for item in sets["olympiad"].items if item.gold.tolerance]
    assert (allowed.id, allowed.gold.tolerance) == ("olympiad/2592", 0.1)
    (loose,) = load_benchmarks(["minerva"], shared / "data", rel_tol={"minerva": SETS["minerva"].rel_tol})
    rounded = next(i for i, item in enumerate(loose.items) if item.gold.text == "4.5e33")
    exact, near = sets["minerva"].items[rounded].gold, loose.items[rounded].gold
    cases = [(allowed.gold, "4.29", True), (allowed.gold, "4.31", False), (exact, r"4.54\times10^{33}", False),
             (near, r"4.54\times10^{33}", True), (near, r"4.55\times10^{33}", False)]  # fmt: skip
    with Grader() as grader:
        for gold, answer, right in cases:
            assert (grader.grade(gold, rf"\boxed{{{answer}}}").status == "correct") == right


def test_clusters_of_a_file_are_taken_as_they_are(shared, tmp_path):
    given = tmp_path / "clusters.json"
    given.write_text(json.dumps({"amc23/0": "x", "amc23/1": "x"}))
    (amc,) = load_benchmarks(["amc23"], shared / "data", given)
    assert [item.cluster for item in amc.items[:3]] == ["x", "x", amc.items[2].id]
    given.write_text("[]")
    assert "not a JSON object of id to cluster" in refusal(load_benchmarks, ["amc23"], shared / "data", given)


def test_a_changed_file_is_refused(shared, tmp_path):
    path = tmp_path / "amc23.jsonl"
    shutil.copy(shared / "data" / "amc23.jsonl", path)
    path.chmod(0o644)
    text = path.read_text()
    path.write_text(text.replace('"answer": "27"', '"answer": "28"'))
    assert f"{path} is not the known amc23: its sha256 does not begin with 26dea8094a1b" in refusal(
        load_benchmarks, ["amc23"], tmp_path
    )
    path.write_text(text.partition("\n")[2])
    assert f"{path} has 39 rows, the set amc23 has 40" in refusal(load_benchmarks, ["amc23"], tmp_path)
    path.unlink()
    wanted = f"{tmp_path} has no amc23.jsonl; put it there, or leave --data out to take math-ai/amc23"
    assert refusal(load_benchmarks, ["amc23"], tmp_path) == wanted


def test_a_file_of_ones_own(tmp_path):
    path = write(tmp_path / "mine.jsonl", [*rows(3), {"id": 7, "problem": "Half?", "answer": 0.5}])
    (mine,) = load_benchmarks([str(path)], None)
    assert [item.id for item in mine.items] == ["r0", "r1", "r2", "7"]
    assert (mine.items[3].gold.answer, mine.items[3].gold.type) == ("0.5", "decimal")
    before = mine.digest
    write(path, rows(4))
    assert load_benchmarks([str(path)], None)[0].digest != before


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([{"id": "r0", "problem": "a", "answer": ""}], "r0: the answer '' cannot be used: r0: the answer is empty"),
        ([{"id": "r0", "problem": 5, "answer": "1"}], "line 1: the problem is not a text"),
        ([*rows(1), *rows(1)], "line 2: the id 'r0' stands twice"),
        ([{"id": "r0", "problem": "a"}], "line 1: no field 'answer'; the fields are id, problem"),
    ],
)
def test_bad_rows_are_named(tmp_path, bad, message):
    path = write(tmp_path / "mine.jsonl", bad)
    where = "mine" if message.startswith("r0") else path
    assert refusal(load_benchmarks, [str(path)], None) == f"{where}, {message}"


def test_unknown_doubled_and_clashing_sets(tmp_path):
    one, other = write(tmp_path / "a.jsonl", rows(2)), write(tmp_path / "b.jsonl", rows(2, 1))
    assert "--benchmarks amc: no such set; choose all, some of gsm8k, math500," in refusal(
        load_benchmarks, ["amc"], None
    )
    assert refusal(load_benchmarks, [str(one), str(one)], None) == "--benchmarks: a stands twice"
    message = refusal(load_benchmarks, [str(one), str(other)], None)
    assert message == "--benchmarks: the id 'r1' stands in a and in b; rename one"


# The hub, from its cache on this machine.


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Puts files of a data set where the hub's client keeps them; there is no network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")

    def put(name, files):
        repository = tmp_path / f"datasets--{name.replace('/', '--')}"
        for file, content in files.items():
            path = repository / "snapshots" / ("a" * 40) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if file.endswith(".parquet"):
                parquet.write_table(pa.Table.from_pylist(content), path)
            elif file.endswith(".jsonl"):
                write(path, content)
            else:
                path.write_text(json.dumps(content))
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / "main").write_text("a" * 40)

    return put


def gsm8k_row(i):
    return {"question": f"How many are {i}?", "answer": f"They are {i}.\n#### {i:,}"}


def test_gsm8k_from_the_hub_is_the_local_set(hub, shared):
    """The file's rows in the hub's columns come back with the file's ids, problems and answers."""
    local = read_set(SETS["gsm8k"], shared / "data")
    columns = [{"question": row["problem"], "answer": f"...\n#### {row['answer']}"} for row in local]
    parts = {"main/test-00000-of-00002.parquet": columns[:700], "main/test-00001-of-00002.parquet": columns[700:]}
    hub("openai/gsm8k", {**parts, "main/train-00000-of-00001.parquet": columns[:3], "README.md": "no data"})
    found = read_set(SETS["gsm8k"], None)
    keys = ("id", "problem", "answer")
    assert [[row[key] for key in keys] for row in found] == [[row[key] for key in keys] for row in local]


def test_math500_from_the_hub_has_the_local_ids(hub, shared):
    local = read_set(SETS["math500"], shared / "data")
    columns = [
        {"unique_id": row["id"].removeprefix("math/"), "problem": row["problem"], "answer": row["answer"]}
        for row in local
    ]
    hub("HuggingFaceH4/MATH-500", {"test.jsonl": columns})
    (found,) = load_benchmarks(["math500"], None)
    assert [item.id for item in found.items] == [row["id"] for row in local]


HERE = Hub("here/set", "*.json", 2, "here/{id}", problem="question", answer="final_answer", form="first",
           tolerance="error")  # fmt: skip


def test_lists_types_and_tolerances_are_read(hub):
    row = {"id": 5, "question": "q", "final_answer": ["$2$", "3"], "is_multiple_answer": False, "error": "1e-1"}
    hub("here/set", {"all.json": [row, {**row, "id": 6, "final_answer": []}]})
    first, second = from_hub(HERE)
    assert first == {"id": "here/5", "problem": "q", "answer": "$2$", "tolerance": "1e-1", "unit": None,
                     "answer_type": None, "is_multiple_answer": False}  # fmt: skip
    assert second["answer"] == ""


def test_boxed_solutions_give_their_last_box(hub):
    row = {"problem": "p", "solution": r"First \boxed{1}, no: $\boxed{\frac{1}{2}}$."}
    hub("here/set", {"a/train-0.parquet": [row], "b/train-0.parquet": [{"problem": "r", "solution": "none"}]})
    math = Hub("here/set", "*/train-*.parquet", 2, "m/{row}", answer="solution", form="boxed")
    found = [(row["id"], row["problem"], row["answer"]) for row in from_hub(math)]
    assert found == [("m/0", "p", r"\frac{1}{2}"), ("m/1", "r", "")]


def test_what_the_hub_may_hold_otherwise(hub):
    hub("here/set", {"all.json": [{"question": "q", "final_answer": ["1"], "id": 1}]})
    assert "here/set (*.json) has 1 rows instead of 2" in refusal(from_hub, HERE)
    hub("here/set", {"all.json": [{"text": "q", "id": 1}] * 2})
    assert refusal(from_hub, HERE) == "here/set: no column 'question'; the columns are text, id"
    assert "here/set has no file *.parquet" in refusal(from_hub, replace(HERE, files="*.parquet"))


def test_a_set_that_is_nowhere_says_so(hub):
    message = refusal(load_benchmarks, ["amc23"], None)
    assert message.startswith("math-ai/amc23 is neither on this machine nor to be had (")
    assert message.endswith("): give local files (--data DIR, task.path=FILE)")


def test_known_unusable_rows_of_the_hub_are_left_out_and_named(hub, shared):
    """Gaokao2023en has two empty answers; a third is an error, as any is in a local file."""
    local = read_set(SETS["gaokao2023en"], shared / "data")
    name = SETS["gaokao2023en"].hub.id
    columns = [{"question": row["problem"], "answer": row["answer"]} for row in local]
    hub(name, {"gaokao2023en.json": columns})
    (found,) = load_benchmarks(["gaokao2023en"], None)
    assert (len(found.items), found.left_out) == (383, ("gaokao/167", "gaokao/192"))
    hub(name, {"gaokao2023en.json": [{**columns[0], "answer": ""}, *columns[1:]]})
    assert "gaokao/192: the answer '' cannot be used" in refusal(load_benchmarks, ["gaokao2023en"], None)
