"""`delaysim grade` and `delaysim audit-verifier` as a user meets them."""

import json
import subprocess
import sys

import pytest


@pytest.fixture
def delaysim(tmp_path):
    """Run the command line in an empty directory; returns the finished process."""

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "delaysim", *arguments], cwd=tmp_path, capture_output=True, text=True
        )

    return run


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_answers_are_judged_line_by_line(delaysim, tmp_path):
    rows = [
        {"gold": r"\sqrt{8}", "prediction": r"\boxed{2\sqrt{2}}", "id": "a"},
        {"gold": "18", "prediction": "She earns\n#### 17"},
        {"gold": "18", "prediction": "I do not know\nat all"},
        {"gold": "18", "prediction": r"\boxed{1", "finished": False},
        {"gold": "$$", "prediction": "3"},
        {"gold": 18, "prediction": 18.0},
        {"gold": "3.15", "prediction": "3.2", "tolerance": 0.1},
    ]
    write(tmp_path / "answers.jsonl", rows)
    done = delaysim("grade", "answers.jsonl", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["status"] for row in found] == [
        *("correct", "wrong", "no_answer", "truncated", "gold_error", "correct", "correct"),
    ]
    assert [row["score"] for row in found] == [1, 0, 0, 0, 0, 1, 1]
    assert [row["method"] for row in found] == ["boxed", "hash", None, None, None, "whole", "whole"]
    assert [row["line"] for row in found] == list(range(1, 8))
    assert found[0]["id"] == "a"
    assert "empty" in found[4]["error"]


def test_strict_mode_wants_a_marker(delaysim, tmp_path):
    write(tmp_path / "a.jsonl", [{"gold": "5", "prediction": p} for p in ("5", r"\boxed{5}", "the answer is 5")])
    done = delaysim("grade", "a.jsonl", "--format", "json", "--mode", "strict")
    assert [json.loads(line)["score"] for line in done.stdout.splitlines()] == [0, 1, 1]


def test_the_table_counts_and_shows_what_a_model_wrote_as_it_is(delaysim, tmp_path):
    write(
        tmp_path / "a.jsonl", [{"gold": "5", "prediction": r"\boxed{[red]5[/red]}"}, {"gold": "5", "prediction": "5"}]
    )
    done = delaysim("grade", "a.jsonl")
    assert "2 answers: 1 wrong, 1 correct" in done.stdout
    assert "[red]5[/red]" in done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"gold": "1", "prediction": "1"}\nnot json\n', "a.jsonl, line 2: not JSON"),
        ('{"gold": "1"}\n', "a.jsonl, line 1: no field 'prediction'"),
        ('{"gold": "1", "prediction": "1"}\n[1]\n', "a.jsonl, line 2: not a JSON object"),
        ('{"gold": ["1"], "prediction": "1"}\n', "a.jsonl, line 1: gold is"),
        ('{"gold": "1", "prediction": true}\n', "a.jsonl, line 1: prediction is true"),
        ('{"gold": "1", "prediction": "1", "tolerance": "x"}\n', "a.jsonl, line 1: tolerance is"),
        ('{"gold": "1", "prediction": "1", "tolerance": -1}\n', "a.jsonl, line 1: tolerance is -1"),
        ('{"gold": "1", "prediction": "1", "tolerance": NaN}\n', "a.jsonl, line 1: tolerance is NaN"),
        ('{"gold": "1", "prediction": "1", "answer_type": 5}\n', "a.jsonl, line 1: answer_type is 5"),
        ('{"gold": "1", "prediction": "1", "unit": "", "id": 7, "answer_type": null}\n', None),
        ('{"gold": "1", "prediction": "1", "unit": [1]}\n', "a.jsonl, line 1: unit is [1]"),
        ('{"gold": "1", "prediction": "1", "finished": "no"}\n', "a.jsonl, line 1: finished is"),
        ("", "a.jsonl is empty"),
    ],
)
@pytest.mark.slow
def test_a_bad_line_is_named(delaysim, tmp_path, text, message):
    (tmp_path / "a.jsonl").write_text(text)
    done = delaysim("grade", "a.jsonl")
    assert done.returncode == (2 if message else 0)
    assert (message or "") in done.stderr
    assert done.stderr.count("\n") == bool(message)


@pytest.mark.parametrize("command", ["grade", "audit-verifier"])
def test_help_and_exact_answers_import_nothing_heavy(tmp_path, command):
    write(tmp_path / "a.jsonl", [{"gold": "5", "prediction": "5", "answer": "5"}])
    arguments = ["--help"] if command == "audit-verifier" else ["grade", "a.jsonl"]
    words = [command, *arguments] if command == "audit-verifier" else arguments
    code = (
        "import sys\nfrom delaysim.__main__ import entry\n"
        f"try:\n    entry({words!r})\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'transformers', 'sympy', 'math_verify', 'mpmath'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_audit_counts_what_each_checker_makes_of_the_golds(delaysim, tmp_path):
    answers = ["5", r"\frac{3}{7}", "2.7e9", "", r"\text{north}", "61_7"]
    write(tmp_path / "golds.jsonl", [{"answer": answer, "id": f"x/{n}"} for n, answer in enumerate(answers)])
    done = delaysim("audit-verifier", "golds.jsonl", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)["golds"]
    assert found["rows"] == 6
    assert found["math_verify"]["dollar_parses"] == 5
    assert found["types"] == {"integer": 1, "fraction": 1, "sci": 1, "text": 1, "base_n": 1}
    assert found["accepted"] == 5
    assert list(found["excluded"]) == ["x/3"]
    assert found["refused"] == {}
    assert found["pairs"] == 9  # five with their own answer, four with the next one that is not empty
    assert found["disagreement_rate"] == len(found["disagreements"]) / 9


def test_audit_prints_both_tables(delaysim, shared):
    done = delaysim("audit-verifier", str(shared / "data" / "amc23.jsonl"))
    assert done.returncode == 0
    assert "plain Math-Verify" in done.stdout
    assert done.stdout.count("amc23") == 3


def test_audit_names_a_bad_line(delaysim, tmp_path):
    write(tmp_path / "golds.jsonl", [{"answer": "1"}, {"answer": [1]}])
    done = delaysim("audit-verifier", "golds.jsonl")
    assert done.returncode == 2
    assert "golds.jsonl, line 2: answer is [1]" in done.stderr


def test_a_package_import_is_light():
    heavy = {"torch", "sympy", "math_verify", "mpmath", "numpy"}
    code = f"import sys, delaysim.grading; print({heavy!r} & set(sys.modules) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "0"
