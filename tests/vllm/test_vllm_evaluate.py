"""`delaysim evaluate --sampler vllm` on a real engine: the rows of hf where weights decide them, resumable, refused."""

import json

import pytest
from directories import build_model, build_tokenizer

from delaysim.__main__ import entry
from delaysim.benchmarks.load import load_benchmarks
from delaysim.grading import Grader
from delaysim.policy.pretrained import load_pretrained
from delaysim.policy.vllm_engine import Engine
from delaysim.settings.models import PretrainedModelConf

pytestmark = pytest.mark.vllm
BLOCK = 128
"""Tokens of a prefix-cache block of an engine on the CPU."""
ASKED = (
    "--n", "3", "--batch", "12", "--mode", "flexible", "--max-new-tokens", "1",
    "--instruction", "say one letter " * (BLOCK // 8), "--template", "{instruction}{problem}",
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that writes letters at random."""
    folder = tmp_path_factory.mktemp("model")
    build_model(head_dim=32, max_position_embeddings=512).save_pretrained(folder)
    build_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """Ten problems, asked with the same words over more than a block of the cache; the model often says n and e."""
    rows = [{"id": f"l{c}", "problem": c, "answer": "ne"[i % 2]} for i, c in enumerate("abcdefghij")]
    path = tmp_path_factory.mktemp("data") / "letters.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def evaluate(model, letters, out, *words):
    return entry(["evaluate", *map(str, (model, "--benchmarks", letters, "--out", out, *ASKED, *words))])


def rows_of(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def answered(model, letters, tmp_path_factory):
    """The same evaluation with both samplers."""
    folder = tmp_path_factory.mktemp("evaluations")
    for kind in ("hf", "vllm"):
        assert evaluate(model, letters, folder / kind, "--sampler", kind) == 0
    return folder


def test_the_problems_are_those_of_the_other_sampler_and_greedy_answers_too(answered):
    ours, theirs = rows_of(answered / "vllm"), rows_of(answered / "hf")
    keys = ("set", "problem", "cluster", "response", "greedy")
    assert [[row[key] for key in keys] for row in ours] == [[row[key] for key in keys] for row in theirs]
    assert len(ours) == 40
    greedy = [[row for row in of if row["greedy"]] for of in (ours, theirs)]
    assert greedy[0] == greedy[1]
    assert len({row["answer"] for row in greedy[0]}) > 3
    assert [row.get("tokens") for row in ours] != [row.get("tokens") for row in theirs], "another sampler's noise"


def test_scores_are_what_the_tokens_say(answered, model, letters):
    codec = load_pretrained(PretrainedModelConf(path=str(model))).codec
    golds = {item.id: item.gold for item in load_benchmarks([str(letters)], None)[0].items}
    kept = [row for row in rows_of(answered / "vllm") if "tokens" in row]
    assert len(kept) == 16
    with Grader() as grader:
        for row in kept:
            found = grader.grade(golds[row["problem"]], codec.decode(row["tokens"]), not row["truncated"], "flexible")
            assert (row["score"], row["status"], row["answer"]) == (found.score, found.status, found.extracted)
            assert row["truncated"] == (row["tokens"][-1] not in codec.stop_ids)
    assert {row["score"] for row in rows_of(answered / "vllm")} == {0.0, 1.0}


def test_cut_and_resumed_the_rows_are_the_same_bytes(answered, model, letters, tmp_path):
    """A new engine, its prefix cache empty, goes on where another had answered problems that begin alike."""
    whole = (answered / "vllm" / "rows.jsonl").read_bytes()
    out = tmp_path / "cut"
    out.mkdir()
    (out / "evaluation.json").write_bytes((answered / "vllm" / "evaluation.json").read_bytes())
    (out / "rows.jsonl").write_bytes(whole[: len(whole) // 2])
    assert evaluate(model, letters, out, "--sampler", "vllm") == 0
    assert (out / "rows.jsonl").read_bytes() == whole


def test_a_finished_evaluation_starts_no_engine(answered, model, letters, monkeypatch):
    monkeypatch.setattr(Engine, "__init__", lambda *_, **__: 1 / 0)
    assert evaluate(model, letters, answered / "vllm", "--sampler", "vllm") == 0


def test_the_manifest_names_sampler_and_precision_and_no_other_may_go_on(answered, model, letters, capsys):
    found = {
        k: json.loads((answered / k / "evaluation.json").read_text())["identity"]["sampler"] for k in ("hf", "vllm")
    }
    assert found["hf"] == {"kind": "hf", "precision": "float32"}
    assert (found["vllm"]["kind"], found["vllm"]["precision"]) == ("vllm", "float32")
    for there, words in (
        ("hf", ("--sampler", "vllm")),
        ("vllm", ()),
        ("vllm", ("--sampler", "vllm", "sampler.eager=true")),
    ):
        assert evaluate(model, letters, answered / there, *words) == 2
        error = capsys.readouterr().err
        assert (error.count("\n"), "holds another evaluation (sampler differ)" in error) == (1, True)


def test_an_engine_that_fails_keeps_what_was_answered(answered, model, letters, tmp_path, monkeypatch, capsys):
    generate, calls = Engine.generate, iter(range(100))

    def dies(self, prompts, params):
        if next(calls) == 4:
            monkeypatch.setattr(self._llm.llm_engine, "step", lambda: 1 / 0)
        return generate(self, prompts, params)

    monkeypatch.setattr(Engine, "generate", dies)
    assert evaluate(model, letters, tmp_path, "--sampler", "vllm") == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "delaysim: the vLLM engine failed while generating: ZeroDivisionError: division by zero; "
        "16 rows are kept, the same command goes on"
    )
    monkeypatch.undo()
    assert evaluate(model, letters, tmp_path, "--sampler", "vllm") == 0
    assert rows_of(tmp_path) == rows_of(answered / "vllm")
