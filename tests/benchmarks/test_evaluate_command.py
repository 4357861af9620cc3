"""`delaysim evaluate` end to end on a small random model: folders, resumption, formats, runs, and what is refused."""

import csv
import io
import json
import re
import sys

import pytest
from directories import build_model, build_tokenizer
from settings import make_config, run, small_config

from delaysim.__main__ import entry
from delaysim.errors import SamplerFailed
from delaysim.files import digest
from delaysim.policy.pretrained import load_pretrained
from delaysim.policy.sampler import HfSampler
from delaysim.run.respondent import candidate
from delaysim.scorecard import scorecard
from delaysim.settings.configfile import save_config
from delaysim.settings.models import PretrainedModelConf

SHORT = ("--n", "2", "--max-new-tokens", "6", "--instruction", "go", "--template", "{problem} {instruction}")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that writes letters at random."""
    folder = tmp_path_factory.mktemp("model")
    build_model().save_pretrained(folder)
    build_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def sums(tmp_path):
    rows = [{"id": f"s{i}", "problem": f"what is {'abcdefgh'[i]}?", "answer": str(i)} for i in range(7)]
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def evaluate(capsys, *words):
    code = entry(["evaluate", *map(str, words)])
    return code, *capsys.readouterr()


def rows_of(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def test_rows_table_and_a_second_start(capsys, model, sums, tmp_path):
    out = tmp_path / "out"
    code, table, progress = evaluate(capsys, model, "--benchmarks", sums, "--out", out, *SHORT)
    assert code == 0
    rows = rows_of(out)
    assert len(rows) == 21
    assert {row["n_tokens"] <= 6 for row in rows} == {True}
    assert "sums 7/7" in progress
    lines = table.splitlines()
    assert lines[0].split() == [
        "set",
        "problems",
        "greedy",
        "avg@2",
        "pass@2",
        "maj@2",
        "cut",
        "no",
        "answer",
        "tokens",
    ]
    assert [line.split()[0] for line in lines[1:5]] == ["sums", "macro", "item-weighted", "deduplicated"]
    before = (out / "rows.jsonl").read_bytes()
    code, again, progress = evaluate(capsys, model, "--benchmarks", sums, "--out", out, *SHORT)
    assert (code, again, progress) == (0, table, "")
    assert (out / "rows.jsonl").read_bytes() == before


def test_killed_and_started_again_the_rows_are_the_same_bytes(capsys, model, sums, tmp_path):
    words = (model, "--benchmarks", sums, *SHORT, "--batch", "4")
    evaluate(capsys, *words, "--out", tmp_path / "whole")
    whole = (tmp_path / "whole" / "rows.jsonl").read_bytes()
    evaluate(capsys, *words, "--out", tmp_path / "cut")
    (tmp_path / "cut" / "rows.jsonl").write_bytes(whole[: len(whole) // 2])
    assert evaluate(capsys, *words, "--out", tmp_path / "cut")[0] == 0
    assert (tmp_path / "cut" / "rows.jsonl").read_bytes() == whole


def test_problems_are_a_prefix_and_share_their_noise(capsys, model, sums, tmp_path):
    evaluate(capsys, model, "--benchmarks", sums, "--out", tmp_path / "all", *SHORT)
    evaluate(capsys, model, "--benchmarks", sums, "--out", tmp_path / "few", *SHORT, "--problems", 3)
    assert rows_of(tmp_path / "few") == rows_of(tmp_path / "all")[:9]


def test_every_number_comes_from_the_rows(capsys, model, sums, tmp_path):
    words = (model, "--benchmarks", sums, "--out", tmp_path / "out", *SHORT)
    card = json.loads(evaluate(capsys, *words, "--format", "json")[1])
    assert card == json.loads(json.dumps(scorecard(rows_of(tmp_path / "out"))))
    lines = list(csv.DictReader(io.StringIO(evaluate(capsys, *words, "--format", "csv")[1])))
    assert [(line["kind"], line["name"]) for line in lines] == [
        ("set", "sums"), ("mean", "macro"), ("mean", "item_weighted"), ("mean", "deduplicated"),
    ]  # fmt: skip
    (found,) = card["sets"].values()
    assert float(lines[0]["truncated"]) == found["truncated"]
    assert (lines[0]["problems"], lines[0]["pass@2"]) == ("7", str(found["pass_at_k"]["2"]))
    assert [lines[0][f"maj@{k}"] for k in (1, 2)] == [str(found["majority_at_k"][k]) for k in ("1", "2")]
    assert (lines[0]["maj@2"], lines[1]["maj@1"]) == (lines[0]["majority"], "")


def test_the_folder_is_named_by_what_decides_the_rows(capsys, model, sums, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in ((), ("--workers", "2"), ("--max-new-tokens", "5"), ("--temperature", "0.5"), ("--mode", "flexible")):
        assert evaluate(capsys, model, "--benchmarks", sums, *SHORT, *words, "--problems", 1)[0] == 0
    folders = sorted(folder.name for folder in (tmp_path / "runs" / "evaluate").iterdir())
    assert len(folders) == 4
    assert all(name.startswith(f"{model.name.lower()}-") for name in folders)


def test_a_run_is_evaluated_at_its_last_checkpoint(model, tmp_path):
    """Another model's weights in a run's checkpoint are what answers, not the base's."""
    from safetensors.torch import save_file

    from delaysim.files import write_json

    settings = ("D=2", "model=pretrained", f"model.path={model}", "task=sums")
    cfg = make_config(*settings)
    trained = load_pretrained(PretrainedModelConf(path=str(model))).model
    tensors = {name: parameter.detach() + 1 for name, parameter in trained.named_parameters()}
    folder = tmp_path / "checkpoints" / "00000007"
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors")
    save_config(cfg, tmp_path / "config.yaml")
    base = candidate(str(tmp_path), None, None)
    assert (base.update, base.weights) == (0, None)
    write_json(tmp_path / "checkpoint.json", {"update": 7, "weights": "checkpoints/00000007", "sizes": {}})
    found = candidate(str(tmp_path), "bfloat16", "plain")
    assert (found.name, found.update, found.conf.dtype, found.conf.template) == (tmp_path.name, 7, "bfloat16", "plain")
    assert digest(found.identity()) != digest(base.identity())
    loaded = dict(candidate(str(tmp_path), None, None).load("cpu").model.named_parameters())
    assert all(bool((loaded[name] == tensor).all()) for name, tensor in tensors.items())


F32, BF16, AUTOCAST = "float32", "bfloat16", "learner.precision=bf16_autocast"


@pytest.mark.parametrize(
    ("run", "asked", "kind", "precision"),
    [
        ((), {}, "hf", F32),
        ((AUTOCAST,), {}, "hf", "bf16_autocast"),
        (("sampler.dtype=bfloat16",), {}, "hf", BF16),
        (("sampler.dtype=bfloat16", AUTOCAST), {}, "hf", BF16),
        (("sampler=vllm",), {}, "vllm", F32),
        (("sampler=vllm", "sampler.dtype=bfloat16"), {}, "vllm", BF16),
        (("sampler=vllm", "sampler.dtype=bfloat16"), {"sampler": "hf"}, "hf", BF16),
        (("sampler=vllm", AUTOCAST), {"sampler": "hf"}, "hf", BF16),
        (("sampler=vllm", "sampler.dtype=float32", AUTOCAST), {"sampler": "hf"}, "hf", F32),
        ((AUTOCAST,), {"sampler": "vllm"}, "vllm", BF16),
        ((AUTOCAST,), {"dtype": F32}, "hf", F32),
        (("sampler=vllm", "sampler.dtype=bfloat16"), {"dtype": F32}, "vllm", F32),
        ((), {"dtype": BF16, "sampler": "vllm"}, "vllm", BF16),
        (None, {}, "hf", F32),
        (None, {"sampler": "vllm", "dtype": BF16}, "vllm", BF16),
    ],
)
def test_a_run_answers_as_it_sampled_unless_told(model, tmp_path, run, asked, kind, precision):
    """Sampler and precision are the run's, the other's alone where one is given; --dtype replaces both precisions."""
    target = model
    if run is not None:
        settings = ("D=2", "model=pretrained", f"model.path={model}", "task=sums", *run)
        save_config(make_config(*settings), tmp_path / "config.yaml")
        target = tmp_path
    who = candidate(str(target), asked.get("dtype"), None, asked.get("sampler"))
    found = who.drawn()["sampler"]
    assert (found["kind"], found["precision"]) == (kind, precision)
    assert who.answering.autocast == (
        kind == "hf" and AUTOCAST in (run or ()) and not {"dtype", "sampler"} & set(asked)
    )


def test_an_engine_keeps_its_run_s_settings_and_takes_others(model, tmp_path):
    run = ("sampler=vllm", "sampler.sleep=1", "sampler.sequences=32", "sampler.memory_share=0.3")
    save_config(
        make_config("D=2", "model=pretrained", f"model.path={model}", "task=sums", *run), tmp_path / "config.yaml"
    )
    given = ("sampler.memory_share=0.8", "sampler.prefix_cache=false")
    before, after = (candidate(str(tmp_path), None, None, None, of).decoding(100, 0.5) for of in ((), given))
    conf = after.answering.sampler
    assert (conf.memory_share, conf.sequences, conf.prefix_cache) == (0.8, 32, False)
    assert (conf.sleep, conf.max_new_tokens, conf.temperature) == (0, 100, 0.5), "nothing is trained beside it"
    here = candidate(str(tmp_path), None, None, None, given[:1]).decoding(100, 0.5)
    assert here.drawn() == before.drawn(), "a share of the memory decides no response"
    assert after.drawn()["sampler"] == {"kind": "vllm", "precision": F32, "sequences": 32, "prefix_cache": False,
                                        "eager": False}  # fmt: skip


def test_the_manifest_names_the_sampler_and_another_is_refused(capsys, model, sums, tmp_path):
    words = (model, "--benchmarks", sums, "--problems", 1, "--out", tmp_path / "out", *SHORT)
    assert evaluate(capsys, *words)[0] == 0
    found = json.loads((tmp_path / "out" / "evaluation.json").read_text())["identity"]
    assert found["sampler"] == {"kind": "hf", "precision": "float32"}
    for other in (("--sampler", "vllm", "--batch", 64), ("--dtype", "bfloat16")):
        code, _, error = evaluate(capsys, *words, *other)
        assert (code, error.count("\n")) == (2, 1)
        assert re.search(r"holds another evaluation \((model, )?sampler differ\): give another --out", error)


def test_a_set_alone_has_its_customary_tolerance(capsys, model, shared, tmp_path):
    words = (model, "--data", shared / "data", "--benchmarks", "minerva", "--problems", 1, "--n", 0)
    assert evaluate(capsys, *words, "--max-new-tokens", 1, "--rel-tol", "minerva", "--out", tmp_path)[0] == 0
    assert json.loads((tmp_path / "evaluation.json").read_text())["identity"]["rel_tol"] == {"minerva": 0.01}


def test_without_vllm_its_sampler_is_one_line(capsys, model, sums, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    words = (model, "--benchmarks", sums, "--out", tmp_path / "out", "--sampler", "vllm", *SHORT)
    code, _, error = evaluate(capsys, *words)
    assert (code, error.count("\n")) == (2, 1)
    assert "needs vLLM: pip install 'delaysim[vllm]'" in error


def test_more_tokens_than_an_engine_has_positions_for(capsys, model, sums, tmp_path):
    """Said before any engine starts: the longest prompt, `what is a? go`, has 13 tokens, the model 128 positions."""
    words = (model, "--benchmarks", sums, "--out", tmp_path / "out", *SHORT)
    code, _, error = evaluate(capsys, *words, "--sampler", "vllm", "--max-new-tokens", 116)
    assert (code, error.count("\n")) == (2, 1)
    assert (
        "--max-new-tokens 116: with the longest prompt, of 13 tokens, that is 129, and the model has 128: give 115"
        in error
    )


def test_an_engine_that_dies_keeps_its_rows(capsys, model, sums, tmp_path, monkeypatch):
    """What was answered stays, the error is one line, and the same command ends with the rows of an unbroken one."""
    words = (model, "--benchmarks", sums, *SHORT, "--batch", 4)
    evaluate(capsys, *words, "--out", tmp_path / "whole")
    sample, calls = HfSampler.sample, iter(range(100))

    def dies(self, *arguments):
        if next(calls) == 4:
            raise SamplerFailed("the vLLM engine failed while generating: out of memory")
        return sample(self, *arguments)

    monkeypatch.setattr("delaysim.policy.pretrained._verify_sampler", lambda model: None)
    monkeypatch.setattr(HfSampler, "sample", dies)
    code, _, error = evaluate(capsys, *words, "--out", tmp_path / "died")
    monkeypatch.undo()
    assert code == 1
    said = "the vLLM engine failed while generating: out of memory; 12 rows are kept, the same command goes on"
    assert error.splitlines()[-1] == f"delaysim: {said}"
    assert len(rows_of(tmp_path / "died")) == 12
    assert evaluate(capsys, *words, "--out", tmp_path / "died")[0] == 0
    assert rows_of(tmp_path / "died") == rows_of(tmp_path / "whole")


def test_a_tiny_run_is_refused_in_one_line(capsys, base_cache, sums, tmp_path):
    run(small_config("D=2", "updates=1", "evaluation.every=null"), tmp_path / "run")
    code, _, error = evaluate(capsys, tmp_path / "run", "--benchmarks", sums)
    assert (code, error.count("\n")) == (2, 1)
    assert "trained model=tiny, which reads chain sums only: its accuracy is in its evals.jsonl" in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--benchmarks", "amc24"), "--benchmarks amc24: no such set; choose all, some of gsm8k"),
        (("--n", "-1"), "--n -1: give 0 or more"),
        (("--problems", "0"), "--problems 0: give 1 or more, or leave it out for all"),
        (("--temperature", "0"), "--temperature 0: give a number above 0; --n 0 evaluates greedily alone"),
        (("--rel-tol", "minerva=big"), "--rel-tol minerva=big: write SET=NUMBER"),
        (("--rel-tol", "math500"), "--rel-tol math500: write SET=NUMBER"),
        (("--rel-tol", "minerva"), "--rel-tol minerva: not among the sets; choose one of sums"),
        (("--template", "qwen"), "model.template=qwen: choose one of auto, chat"),
        (("--data", "/nowhere"), "has no gsm8k.jsonl; put it there"),
        (("--batch", "0"), "--batch 0: give 1 or more, or leave it out"),
        (("--device", "gpu"), "--device gpu is no device; write cpu, or cuda:0"),
        (("--temperature", ".001", "--sampler", "vllm"), "sampler.temperature=0.001: give 0.01 or more"),
        (("sampler.eager=true",), "sampler.eager=true: a setting of a vLLM engine; give --sampler vllm"),
        (("--sampler", "vllm", "sampler.sleep=1"), "sampler.sleep=1: write sampler.KEY=VALUE with one of sequences,"),
        (("--sampler", "vllm", "memory_share=.5"), "memory_share=.5: write sampler.KEY=VALUE with one of sequences,"),
        (("--sampler", "vllm", "sampler.memory_share=2"), "sampler.memory_share=2: give a number from 0.01 to 0.99"),
        (("--sampler", "vllm", "sampler.sequences=few"), "sampler.sequences=few: Value 'few' of type 'str' could not"),
    ],
)
def test_what_cannot_be_meant_is_one_line(capsys, model, sums, words, message):
    given = ("--benchmarks", sums) if words[0] not in ("--benchmarks", "--data") else ()
    code, _, error = evaluate(capsys, model, *given, *words)
    assert (code, error.count("\n")) == (2, 1)
    assert message in error


def test_a_model_that_is_not_there_is_one_line(capsys, sums):
    code, _, error = evaluate(capsys, "no/such/place/x.gguf", "--benchmarks", sums)
    assert (code, error.count("\n")) == (2, 1)
    assert "model.path=no/such/place/x.gguf: no such file or directory, and no hub id" in error
