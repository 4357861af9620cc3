"""The command line as a user meets it, in a process and a directory of its own."""

import json
import subprocess
import sys

import pytest
from forked import Server

FAST = ("model.sft_steps=20", "updates=4", "evaluation.problems=8", "evaluation.every=2", "B=2", "G=4")


@pytest.fixture
def delaysim(tmp_path, base_cache):
    """Run the command line in an empty directory; returns the finished process."""

    def run(*arguments, **options):
        return subprocess.run(
            [sys.executable, "-m", "delaysim", *arguments], cwd=tmp_path, capture_output=True, text=True, **options
        )

    return run


@pytest.fixture(scope="module")
def loaded():
    """The command line, its modules loaded once."""
    server = Server()
    yield server
    server.close()


BAD = {
    (
        "D=3",
    ): "no suite chosen: add one of +suite=fixed_delay, +suite=simulated_async, +suite=no_delay, +suite=measured",
    ("+suite=fixed_delay", "D=abc"): "D=abc: expected a whole number",
    ("+suite=fixed_delay", "sinks=wandb"): "sinks=wandb: give a list: sinks=[wandb]",
    ("+suite=fixed_delay", "seed=1.5"): "seed=1.5: expected a whole number",
    ("+suite=nope",): "suite=nope: there is no such suite; choose one of fixed_delay, measured, no_delay, ",
    ("suite=fixed_delay",): "write +suite=",
    ("+suite=fixed_delay", "updtaes=1"): "updtaes: there is no such setting; did you mean updates?",
    ("+suite=fixed_delay", "estimator.epss=1"): "estimator.epss: there is no such setting",
    ("+suite=fixed_delay", "estimator=foo"): "choose one of a3po, cispo, custom, dapo, decoupled",
    ("+suite=fixed_delay", "D=1,2"): "add -m",
    ("+suite=fixed_delay", "D=-1"): "D=-1: give 0 or more",
    ("+suite=fixed_delay", "G=1"): "G=1: learner.advantage=group_norm needs a group of 2 or more; use G=8",
    ("+suite=fixed_delay", "B=0"): "B=0: give 1 or more",
    ("+suite=fixed_delay", "eps=-0.1"): "eps=-0.1: give 0 or more",
    ("+suite=fixed_delay", "estimator=reinforce", "eps=0.1"): "the estimator reinforce has no threshold; drop eps",
    ("+suite=simulated_async", "lam=-1"): "lam=-1: give 0 or more",
    ("+suite=fixed_delay", "updates=0"): "updates=0: give 1 or more",
    ("+suite=simulated_async", "C_gen=0"): "give C_gen > 0, e.g. C_gen=85",
    ("+suite=fixed_delay", "C_update=0"): "C_update=0: give a number above 0",
    ("+suite=fixed_delay", "lr=nan"): "lr=nan: give a finite number",
    ("+suite=fixed_delay", "sampler.temperature=0"): "give a temperature > 0, e.g. 1",
    ("+suite=simulated_async", "D=3"): "use +suite=fixed_delay D=3, or drop D",
    ("+suite=no_delay", "D=3"): "use +suite=fixed_delay D=3, or drop D",
    ("+suite=fixed_delay", "lam=1"): "use +suite=simulated_async lam=1, or drop lam",
    ("+suite=fixed_delay", "clock.eta=3"): "the suite fixed_delay sets clock.lam=0 and clock.eta=D",
    ("+suite=simulated_async", "clock.eta=1.5"): "clock.eta=1.5: expected auto or a whole number",
    ("+suite=simulated_async", "clock.workers=0"): "clock.workers=0: give 1 or more",
    (
        "+suite=simulated_async",
        "lam=0",
        "clock.eta=4",
        "clock.slots=8",
        "clock.start=stagger",
    ): "clock.start=stagger: with",
    ("+suite=fixed_delay", "mode=trian"): "mode=trian: choose one of train, trace, plan",
    ("+suite=fixed_delay", "model=pretrained"): "model.path is not set: give model.path=...",
    ("+suite=fixed_delay", "model=pretrained", "task=custom", "model.path=nowhere"): "task.path is not set",
    ("+suite=fixed_delay", "task=gsm8k", "task.path=absent.jsonl"): "absent.jsonl",
    ("+suite=fixed_delay", "resume=must"): "resume=must, but there is no run in",
    ("mode=trace", "+suite=simulated_async", "lengths=recorded", "lengths.path=no.csv", "lengths.column=x"): "no.csv",
    ("frobnicate",): "'frobnicate' is neither a command (status, resume, theory, ",
    ("status", "nowhere"): "nowhere is not a directory",
    ("screen", "nowhere"): "nowhere: there is no such run directory or file of groups (.jsonl)",
    ("check-estimator", "nowhere.py"): "nowhere.py is not a file",
    ("+suite=fixed_delay", "estimator=custom"): "estimator.path is not set: give estimator.path=...",
    ("+suite=fixed_delay", "estimator=custom", "estimator.path=no.py"): "no.py is not a file",
    ("+suite=fixed_delay", "rule=nope"): "rule=nope: there is no such rule; choose one of gac, none, vcpo",
    ("+suite=fixed_delay", "recipe=paper"): "recipe=paper: choose one of shared, published",
    ("resume", "nowhere"): "nowhere is not a run directory",
}


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_input_is_one_line_and_exit_2_and_writes_nothing(loaded, tmp_path, arguments):
    done = loaded.run(tmp_path, *arguments)
    assert done.returncode == 2
    assert BAD[arguments] in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.json*"))


def test_debug_shows_the_traceback(delaysim, monkeypatch):
    monkeypatch.setenv("DELAYSIM_DEBUG", "1")
    assert "Traceback" in delaysim("+suite=fixed_delay", "D=-1").stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("mode=trace", "+suite=simulated_async", "updates=50"),
        ("mode=plan", "+suite=fixed_delay", "D=128"),
        ("mode=plan", "-m", "+suite=fixed_delay", "D=0,128"),
        ("status", "."),
        ("theory", "--D", "32", "--updates", "800"),
        ("predict", "--gpus", "2", "--B", "2", "--G", "2", "--lengths", "mean=9", "--speed", "1=9", "--trainer", "1=1"),
        ("grade", "--help"),
        ("audit-verifier", "--help"),
        ("validate", "--help"),
        ("moe-noise", "--help"),
    ],
    ids=" ".join,
)
def test_light_modes_never_import_torch(delaysim, tmp_path, arguments):
    """The process ends with an error if any of them touches torch, transformers or numba."""
    guard = tmp_path / "guard"
    for name in ("torch", "transformers", "numba"):
        (guard / name).mkdir(parents=True)
        (guard / name / "__init__.py").write_text(f"raise SystemExit('{name} was imported')")
    code = f"import sys; sys.path.insert(0, {str(guard)!r}); from delaysim.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_begins_with_examples_and_fits_a_screen(delaysim):
    lines = delaysim("--help").stdout.splitlines()
    assert len(lines) < 60
    assert sum(line.lstrip().startswith("delaysim ") for line in lines[:10]) >= 6
    for name in ("D ", "G ", "B ", "eps", "lam", "C_gen", "C_update", "seed", "updates", "lr"):
        assert any(name in line for line in lines)


def test_plan_writes_nothing_and_names_every_cell(delaysim, tmp_path):
    done = delaysim("mode=plan", "-m", "+suite=fixed_delay", "D=0,32", "estimator=grpo,gmc")
    assert done.returncode == 0
    assert "4 runs, 4 to do" in done.stdout
    assert "the model's yaml" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_run_leaves_a_whole_directory_and_is_not_run_twice(delaysim, tmp_path):
    done = delaysim("+suite=fixed_delay", "D=2", *FAST)
    assert done.returncode == 0, done.stderr
    (run,) = tmp_path.glob("runs/fixed_delay/*")
    files = {path.name for path in run.iterdir()}
    wanted = "config.yaml manifest.json status.json launches.jsonl updates.jsonl groups.jsonl evals.jsonl trace.parquet"
    assert files >= {*wanted.split(), "checkpoints", "run.log"}
    assert "requested 2" in done.stdout
    before = (run / "updates.jsonl").read_bytes()
    again = delaysim("+suite=fixed_delay", "D=2", *FAST)
    assert "resume=never runs it again" in again.stdout
    assert (run / "updates.jsonl").read_bytes() == before


@pytest.mark.slow
def test_a_sweep_goes_on_past_a_bad_cell_and_exits_2(delaysim, tmp_path):
    done = delaysim("-m", "+suite=fixed_delay", "D=-1,1", *FAST)
    assert done.returncode == 2
    assert "not run: D=-1: D=-1: give 0 or more" in done.stdout
    assert [json.loads(path.read_text())["state"] for path in tmp_path.rglob("status.json")] == ["done"]


@pytest.mark.slow
def test_status_and_plan_know_finished_runs(delaysim):
    delaysim("-m", "+suite=fixed_delay", "D=0,1", *FAST)
    assert "2 runs, 2 done, 0 running" in delaysim("status").stdout
    plan = delaysim("mode=plan", "-m", "+suite=fixed_delay", "D=0,1,2", *FAST).stdout
    assert "3 runs, 1 to do" in plan
    assert "2 finished runs here" in plan


@pytest.mark.slow
def test_trace_rows_equal_a_training_runs_where_lengths_do_not_matter(delaysim, tmp_path):
    import pyarrow.parquet as pq

    delaysim("+suite=fixed_delay", "D=2", *FAST)
    delaysim("mode=trace", "+suite=fixed_delay", "D=2", *FAST)
    tables = [pq.read_table(path).drop_columns("lengths") for path in sorted(tmp_path.rglob("trace.parquet"))]
    assert len(tables) == 2
    assert tables[0].equals(tables[1])
