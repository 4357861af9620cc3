"""Every log format, field by field, from records in the shape that its system writes."""

import pytest
from importing.logs import episode, exported, output, read, reasons, session, table, trajectory, write

IDS = ("group_id", "sample")
VERSIONS = ("version_start", "version_end", "consumed_update")


def test_areal_sessions_are_responses_and_tasks_their_groups(tmp_path):
    path = write(
        tmp_path / "session_tracer/actor/sessions-r0.jsonl",
        session(4, 8, 100.0, 107.5, role="actor"),
        session(4, 9, 100.5, 103.0, role="actor"),
        session(5, 10, 101.0, 104.0, "rejected", role="actor", reason="stale"),
        session(6, 11, 102.0, None, "pending", role="actor"),
    )
    ledger, tally = read("areal", tmp_path)
    assert table(ledger, *IDS, "submit_t", "done_t", "status") == [
        ("actor/0/4", 0, 100.0, 107.5, "accepted"),
        ("actor/0/4", 1, 100.5, 103.0, "accepted"),
        ("actor/0/5", 0, 101.0, 104.0, "rejected"),
        ("actor/0/6", 0, 102.0, None, "pending"),
    ]
    assert ledger.said == ["group_id", "sample", "submit_t", "done_t", "status"]
    assert ledger.kept.tolist() == [True, True, False, False]
    assert (tally.lines, tally.skipped) == (4, 0)
    assert read("areal", path)[0].texts == ledger.texts


def test_areal_ids_that_start_over_after_a_restart_are_other_groups(tmp_path):
    path = write(
        tmp_path / "sessions.jsonl", session(0, 0, 1.0, 2.0), session(0, 0, 9.0, 11.0), session(0, 0, 9.0, 11.0)
    )
    ledger, tally = read("areal", path)
    assert table(ledger, *IDS, "submit_t") == [("0/0", 0, 1.0), ("0/0#1", 0, 9.0)]
    assert reasons(tally) == {"id read before": (1, 3)}


def test_tinker_sums_the_turns_and_leaves_evaluations_out(tmp_path):
    write(
        tmp_path / "iteration_000007/train_rollout_summaries.jsonl",
        trajectory(7, 0, 0, 3, 10, 5, 200), trajectory(7, 0, 1, 3, 40), trajectory(7, 1, 0, 7, 12),
    )  # fmt: skip
    write(
        tmp_path / "iteration_000007/eval_gsm8k_rollout_summaries.jsonl",
        trajectory(7, 0, 0, None, 9, split="eval/gsm8k"),
    )
    write(tmp_path / "metrics.jsonl", {"step": 7})
    ledger, tally = read("tinker", tmp_path)
    assert table(ledger, *IDS, "tokens", *VERSIONS) == [
        ("7/0", 0, 215, 3, 3, 7), ("7/0", 1, 40, 3, 3, 7), ("7/1", 0, 12, 7, 7, 7),
    ]  # fmt: skip
    assert ledger.groups.delay.tolist() == [4, 0]
    assert reasons(tally) == {"of an evaluation": (1, 1)}


def test_prime_rl_joins_what_arrived_with_what_was_trained_on(tmp_path):
    train = tmp_path / "rollouts/step_5/train"
    write(train / "effective/traces.jsonl", episode(1, "g", (2, 4), 30, 12), episode(2, "g", (2, 3), 8))
    write(
        train / "all/traces.jsonl",
        episode(1, "g", (2, 4), 30, 12), episode(2, "g", (2, 3), 8), episode(3, "h", (1, 1), 99),
        episode(4, "h", (1, 1), ok=False), episode(5, "h", (1, 1), 7, trainable=False),
    )  # fmt: skip
    write(tmp_path / "rollouts/step_5/eval/all/traces.jsonl", episode(6, "e", (4, 4), 5, work="eval"))
    write(tmp_path / "metrics.jsonl", {"step": 5, "off_policy/mean": 2.0})
    ledger, tally = read("prime_rl", tmp_path)
    assert table(ledger, *IDS, "tokens", *VERSIONS, "status") == [
        ("g", 0, 42, 2, 4, 4, "trained"), ("g", 1, 8, 2, 3, 4, "trained"),
        ("h", 0, 99, 1, 1, None, "untrained"), ("h", 1, None, 1, 1, None, "failed"),
    ]  # fmt: skip
    assert table(ledger, "submit_t", "done_t")[0] == (50.0, 61.0)
    assert (tally.lines, tally.skipped) == (7, 0)
    assert ledger.groups.delay[:1].tolist() != [2]  # launched first, never trained on
    assert ledger.groups.delay[1] == 2


def test_prime_rl_metrics_are_sums_of_a_step(tmp_path):
    said = {"off_policy/in_flight/mean": 0.5, "off_policy/in_queue/mean": 1.0, "off_policy/dropped": 3.0}
    path = write(
        tmp_path / "metrics.jsonl",
        {"step": 1, "time": 1.0, "loss/mean": 0.1},
        {"step": 1, "time": 1.1, "off_policy/mean": 1.5, "off_policy/max": 2.0, **said},
    )
    ledger, tally = read("prime_rl", path)
    names = ("consumed_update", "reported_mean", "reported_max", "reported_in_flight", "reported_in_queue")
    assert table(ledger, *names, "reported_dropped") == [(0, 1.5, 2.0, 0.5, 1.0, 3)]
    assert (tally.lines, tally.skipped) == (2, 0)


def test_prime_rl_exports_count_the_trained_tokens(tmp_path):
    write(tmp_path / "token_exports/step_2/rank_0.jsonl", exported(2, 0, 6), exported(2, 1, 4, export_step=9))
    ledger, _ = read("prime_rl", tmp_path)
    assert table(ledger, "sample", "tokens", "consumed_update") == [(0, 6, 1), (1, 4, 8)]


def test_vllm_spans_give_first_last_and_mean_version(tmp_path):
    path = write(
        tmp_path / "out.jsonl",
        {"request_id": "a", "outputs": [output(0, [("3", 30), ("5", 10)]), output(1, [("3", 4)], "length")]},
        {"id": "b", "choices": [output(0, [("v12", 2), ("v13", 6)], "abort")]},
        output(0, [("7", 5)], None, request_id="c", consumed_update=9),
        {"request_id": "d", "outputs": [output(0, [])]},
    )
    ledger, _ = read("vllm", path)
    assert table(ledger, *IDS, "tokens", *VERSIONS, "version_mean", "status") == [
        ("a", 0, 40, 3, 5, None, 3.5, "accepted"), ("a", 1, 4, 3, 3, None, 3.0, "accepted"),
        ("b", 0, 8, 12, 13, None, 12.75, "dropped"), ("c", 0, 5, 7, 7, 9, 7.0, "pending"),
        ("d", 0, 0, None, None, None, None, "accepted"),
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_any_columns_by_name(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        path.write_text('\ufeffid,len,v,n,when,ok\n007,12,3,5,2023-11-16 18:17:03.9799600,Kept\n"=1+1",4,,,7.5,\n')
    else:
        first = {"id": "007", "len": 12, "v": 3, "n": 5, "when": "2023-11-16T18:17:03.97996", "ok": "Kept"}
        write(path, first, {"id": "=1+1", "len": 4, "when": 7.5})
    names = {"group_id": "id", "tokens": "len", "version_start": "v", "consumed_update": "n", "submit_t": "when"}
    ledger, _ = read("csv", path, columns={**names, "status": "ok"})
    assert table(ledger, "group_id", "tokens", "version_start", "consumed_update", "submit_t", "status") == [
        ("007", 12, 3, 5, 1700158623.97996, "kept"), ("=1+1", 4, None, None, 7.5, None),
    ]  # fmt: skip


def test_a_delay_column_stands_in_for_the_version(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("learner_step,step_diff\n1,0\n2,1\n3,4\n4,\n")
    ledger, tally = read("csv", path, columns={"consumed_update": "learner_step", "delay": "step_diff"})
    assert table(ledger, "version_start", "consumed_update") == [(1, 1), (1, 2), (None, 4)]
    assert reasons(tally) == {"delay is more than consumed_update": (1, 4)}


def test_patterns_and_directories_name_each_file_once(tmp_path):
    for rank in range(3):
        write(tmp_path / f"sessions-r{rank}.jsonl", session(0, 0, 1.0, 2.0, rank=rank))
    places = (tmp_path / "*.jsonl", tmp_path, tmp_path / "sessions-r1.jsonl")
    ledger, tally = read("areal", *places)
    assert (len(ledger), tally.skipped) == (3, 0)
