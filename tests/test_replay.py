"""The suite `replay` from the command line's side: what is read, refused, planned, traced and trained."""

import json
import shlex
import tempfile
from dataclasses import replace
from functools import cache

import pyarrow.parquet as pq
import pytest
from settings import fingerprint, make_config, rows, run, small_config
from stopping import stopped_and_resumed

from delaysim.__main__ import entry
from delaysim.cli.plan import plan_one
from delaysim.data import read_delays
from delaysim.errors import UserError
from delaysim.run.progress import requested_delay
from delaysim.settings.checks import check
from delaysim.settings.config import DelaysConf
from delaysim.settings.identity import identity, run_id
from delaysim.settings.replay import recorded_delays, replay_command, replay_text


def file(path, text):
    path.write_text(text)
    return path


def composed(path, *overrides, make=small_config):
    """A checked configuration as the command line composes it."""
    return make(f"delays.path={path}", *overrides, suite="replay")


@cache
def base():
    """One composed configuration of the suite; composing takes a third of a second."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as some:
        some.write("delay\n1\n")
        some.flush()
        return composed(some.name, make=make_config)


def config(path, delays=(), clock=(), **settings):
    """The same for a file, with settings of `delays`, of the clock, and others."""
    nested = {"delays": DelaysConf(str(path), **dict(delays)), "clock": replace(base().clock, **dict(clock))}
    cfg = replace(base(), **nested, **settings)
    check(cfg)
    return cfg


def refusal(call, *arguments):
    with pytest.raises(UserError) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "column", "where", "delays"),
    [
        ("a.csv", "n,delay\n1,0\n2,3\n3,\n4,12\n", "delay", None, [0, 3, 12]),
        ("a.csv", "n,delay\n1,2.0\n2, 3 \n", "delay", None, [2, 3]),
        ("a.csv", "run,delay\na,1\nb,2\na,3\n", "delay", "run=a", [1, 3]),
        ("a.csv", "run,delay\na=b,1\nb,2\n", "delay", "run=a=b", [1]),
        ("a.jsonl", '{"d": 4, "run": 1}\n{"d": 5, "run": 2}\n', "d", "run=2", [5]),
    ],
)
def test_columns_of_delays(tmp_path, name, text, column, where, delays):
    assert read_delays(file(tmp_path / name, text), column, where).tolist() == delays


@pytest.mark.slow
def test_the_delays_of_a_trace_come_by_update(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    entry(["mode=trace", "+suite=simulated_async", "updates=12", "B=3", "clock.eta=4", "C_gen=4"])
    place = next(tmp_path.rglob("trace.parquet"))
    table = pq.read_table(place, columns=["update", "group", "delay"]).to_pylist()
    trained = sorted((row["update"], row["group"], row["delay"]) for row in table if row["update"] is not None)
    assert read_delays(place, "delay").tolist() == [delay for _, _, delay in trained]
    assert entry(["mode=trace", "+suite=replay", f"delays.path={place}", "delays.per=group", "updates=12", "B=3"]) == 0
    again = read_delays(next(tmp_path.rglob("replay-*/trace.parquet")), "delay").tolist()
    by_update = [sorted(again[n * 3 : n * 3 + 3]) for n in range(12)]
    assert by_update == [sorted(delay for n, _, delay in trained if n == update) for update in range(12)]
    assert "36 recorded, one per group" in capsys.readouterr().out


@pytest.mark.parametrize("value", ["-1", "1.5", "nan", "NaN", "inf", "1e2", "=1+1", "x", "1_0", "1" * 12, "true"])
def test_what_is_no_delay_is_refused_with_file_and_line(tmp_path, value):
    path = file(tmp_path / "d.csv", f"delay\n0\n{value}\n")
    assert refusal(read_delays, path, "delay") == (
        f"{path}, line 3, column 'delay': {value!r} is not a delay: a whole number of updates, 0 or more"
    )


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("delay\n", {}, "has no delays in column 'delay'"),
        ("delay\n1\n", {"delays": {"column": "d"}}, "line 1: no column 'd'; the columns are delay"),
        ("delay,run\n1,a\n", {"delays": {"where": "run=b"}}, "has no delays in column 'delay' with run=b"),
        ("delay\n1\n", {"delays": {"where": "run"}}, "delays.where=run: give COLUMN=VALUE"),
        ("delay\n1\n", {"delays": {"per": "token"}}, "delays.per=token: choose one of update, group"),
        ("delay\n1\n", {"lam": 1.0}, "clock.lam=1.0: the suite replay takes every delay from delays.path; drop it"),
        ("delay\n1\n", {"clock": {"eta": 3}}, "clock.eta=3: the suite replay takes"),
        ("delay\n1\n", {"clock": {"workers": 3}}, "clock.workers=3: the suite replay takes"),
        ("delay\n1\n", {"clock": {"order": "lifo"}}, "clock.order=lifo: the suite replay takes"),
        ("delay\n1\n", {"D": 3}, "D=3: the suite replay ignores D"),
    ],
)
def test_settings_that_cannot_be_are_one_line(tmp_path, text, settings, message):
    path = file(tmp_path / "d.csv", text)
    assert message in refusal(lambda: config(path, **settings))


def test_other_suites_take_no_recorded_delays_and_this_one_needs_them(tmp_path):
    path = file(tmp_path / "d.csv", "delay\n1\n")
    cfg = config(path)
    of_another = replace(cfg, suite_name="fixed_delay", D=1, clock=replace(cfg.clock, eta=1))
    assert "the suite fixed_delay has delays of its own" in refusal(check, of_another)
    assert "delays.path=null: the suite replay needs" in refusal(check, replace(config(path), delays=DelaysConf()))
    assert f"delays.path={tmp_path}/no: No such file" in refusal(config, tmp_path / "no")


def test_the_run_is_the_contents_of_the_file(tmp_path):
    one, same = (file(tmp_path / name, "delay\n1\n2\n") for name in ("a.csv", "b.csv"))
    other = file(tmp_path / "c.csv", "delay\n1\n3\n")
    assert run_id(config(one)) == run_id(config(same)) != run_id(config(other))
    assert run_id(config(one)) == run_id(config(one, clock={"C_gen": 3.0}))
    assert run_id(config(one)) != run_id(config(one, {"per": "group"}))
    assert "-delay-" in run_id(config(one))
    assert identity(config(one))["clock"] == {"C_update": 1.0}
    odd = file(tmp_path / "d.csv", "[paper] a/b - x\n1\n")
    assert "-_paper_a_b_x-" in run_id(config(odd, {"column": "[paper] a/b - x"}))


def test_what_is_asked_for_in_words(tmp_path):
    path = file(tmp_path / "d.csv", "run,delay\na,1\na,2\nb,7\n")
    cfg = config(path, {"where": "run=a"}, updates=3)
    assert recorded_delays(cfg).tolist() == [1, 2]
    assert requested_delay(cfg) == "as recorded, delay of d.csv"
    assert replay_text(cfg) == "2 recorded, one per update; 3 are needed: they start over"
    assert replay_command(cfg) == f"""+suite=replay delays.path={path} 'delays.where="run=a"'"""
    assert replay_text(config(path, updates=3)) == "3 recorded, one per update"
    assert replay_text(config(path, {"per": "group"}, updates=3, B=2)).endswith("6 are needed: they start over")


def test_a_plan_knows_the_time_of_a_replay(tmp_path):
    path = file(tmp_path / "d.csv", "delay\n1\n")
    assert plan_one(config(path, clock={"C_update": 2.0}, updates=7)).sim_time == 14


def test_the_command_of_a_finished_run_is_one(tmp_path):
    """What `next` prints composes to the same delays."""
    path = file(tmp_path / "d x.csv", "run,de lay\na,1\na,2\nb,7\n")
    cfg = config(path, {"where": "run=a", "column": "de lay"})
    words = shlex.split(replay_command(cfg))
    assert make_config(*words[1:], suite="replay").delays == cfg.delays


@pytest.mark.slow
def test_the_measured_staleness_of_gepo_in_a_trace(shared, tmp_path, monkeypatch, capsys):
    """The wandb export of the runs capped at 4 and 32, one delay per learner step."""
    monkeypatch.chdir(tmp_path)
    place = shared / "traces/gepo_step_diff_tidy.csv"
    for cap, updates, mean, largest in ((4, 1228, 3.0383, 8), (32, 1295, 26.4579, 57)):
        words = [f"delays.path={place}", f"delays.column=step_diff_cap{cap}", f"updates={updates}"]
        assert entry(["mode=trace", "+suite=replay", *words]) == 0
        path = next(tmp_path.rglob(f"replay-step_diff_cap{cap}-*/moments.json"))
        found = json.loads(path.read_text())
        assert (found["delay_mean"], found["delay_max"]) == (pytest.approx(mean, abs=5e-5), largest)
        recorded = read_delays(place, f"step_diff_cap{cap}")
        assert found["delay_mean"] == pytest.approx(recorded.mean())  # each fits: none is above its update
        out = capsys.readouterr().out
        assert f"{updates:,} recorded, one per update\n" in out
        assert "look-ahead" not in out  # no rule of the clock has a part


@pytest.mark.slow
def test_a_constant_recorded_delay_trains_as_the_fixed_delay(base_cache, tmp_path):
    path = file(tmp_path / "d.csv", "delay\n3\n")
    assert run(composed(path), tmp_path / "replay").state == "done"
    assert run(small_config("D=3"), tmp_path / "fixed").state == "done"
    times = {"sim_time", "wait"}
    for name in ("launches", "groups", "updates", "evals"):
        one, other = (
            [{key: row[key] for key in row if key not in times} for row in rows(tmp_path / kind, name) if row]
            for kind in ("replay", "fixed")
        )
        if name == "updates":
            one, other = ([{k: v for k, v in row.items() if k != "tokens_per_s"} for row in of] for of in (one, other))
        assert one == other
    weights = [next((tmp_path / kind).glob("checkpoints/*/model.safetensors")) for kind in ("replay", "fixed")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.slow
def test_a_replay_that_was_stopped_goes_on_byte_for_byte(base_cache, tmp_path, monkeypatch):
    path = file(
        tmp_path / "d.csv", "delay\n" + "".join(f"{d}\n" for d in (0, 1, 2, 0, 4, 1, 3, 0, 2, 5, 5, 0, 7, 1, 2, 3))
    )
    overrides = ("delays.per=group",)
    whole = tmp_path / "whole"
    assert run(composed(path, *overrides), whole).state == "done"
    found = stopped_and_resumed(overrides, tmp_path / "resumed", monkeypatch, make=lambda *o: composed(path, *o))
    assert found == fingerprint(whole)


@pytest.mark.slow
def test_runs_of_recorded_delays_are_compared_and_reported(base_cache, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = file(tmp_path / "d.csv", "near,far\n0,3\n1,4\n")
    for column in ("near", "far"):
        for estimator in ("grpo", "gmc"):
            cfg = composed(path, f"delays.column={column}", f"estimator={estimator}")
            assert run(cfg, tmp_path / "runs/replay" / run_id(cfg)).state == "done"
    assert entry(["status", "runs"]) == 0
    assert entry(["compare", "runs"]) == 0
    assert "delays.column=far" in capsys.readouterr().out.replace(" ", "")
    assert entry(["report", "runs", "-o", "r.html"]) == 0
    assert "delays.column" in (tmp_path / "r.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "eta", "l_ref"), [("conv", 193, 204.3), ("code", 309, 25.8)], ids=["conversations", "code"]
)
def test_recorded_lengths_of_a_real_service_hold_the_law_of_the_cap(
    shared, tmp_path, monkeypatch, capsys, name, eta, l_ref
):
    """In the steady state the mean delay is the look-ahead; heavier tails only widen it."""
    monkeypatch.chdir(tmp_path)
    place = f"lengths.path={shared}/traces/AzureLLMInferenceTrace_{name}.csv"
    words = ["lengths=recorded", place, "lengths.column=GeneratedTokens", "updates=2000"]
    assert entry(["mode=trace", "+suite=simulated_async", *words]) == 0
    assert f"look-ahead     {eta} updates, L_ref {l_ref} tokens" in capsys.readouterr().out
    folder = next(tmp_path.rglob("moments.json")).parent
    found = json.loads((folder / "moments.json").read_text())
    assert found["delay_mean_steady"] == pytest.approx(eta, rel=0.1)
    assert found["delay_sd"] > (50 if name == "conv" else 200)


@pytest.mark.slow
def test_delays_of_real_lengths_are_trained_with(shared, base_cache, tmp_path, monkeypatch):
    """A trace with recorded lengths, and its delays in a run of the tiny default: the same delays, update by update."""
    monkeypatch.chdir(tmp_path)
    place = f"lengths.path={shared}/traces/AzureLLMInferenceTrace_code.csv"
    words = ["lengths=recorded", place, "lengths.column=GeneratedTokens", "updates=8", "B=2", "G=4", "C_gen=3"]
    assert entry(["mode=trace", "+suite=simulated_async", *words]) == 0
    trace = next(tmp_path.rglob("trace.parquet"))
    assert run(composed(trace, "delays.per=group"), tmp_path / "run").state == "done"
    trained = [sorted((row["update"], row["delay"]) for row in rows(tmp_path / "run", "groups"))]
    table = pq.read_table(trace, columns=["update", "delay"]).to_pylist()
    assert trained == [sorted((row["update"], row["delay"]) for row in table if row["update"] is not None)]
