"""Worker processes: deadlines, deaths, threads, alarms, and that none is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from delaysim.grading import Grader, UndecidedError, grade, make_gold
from delaysim.grading.workers import Pool, WorkerDiedError, WorkerTimeoutError

NEEDS_ALGEBRA = make_gold(r"\sqrt{50}"), r"\boxed{5\sqrt{2}}"
NEEDS_NONE = make_gold("18"), r"\boxed{18}"


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(pid, seconds=10):
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(pid)


def test_no_process_starts_where_exact_rules_decide():
    with Grader() as grader:
        assert grader.grade(*NEEDS_NONE).status == "correct"
        assert grader.grade(NEEDS_ALGEBRA[0], r"\boxed{x}").status == "wrong"
        assert grader.pool.pids() == []


def test_without_a_grader_algebra_is_refused():
    assert grade(*NEEDS_NONE).score == 1
    with pytest.raises(UndecidedError):
        grade(*NEEDS_ALGEBRA)


def test_worker_ends_with_its_grader():
    with Grader() as grader:
        assert grader.grade(*NEEDS_ALGEBRA).status == "correct"
        (pid,) = grader.pool.pids()
    assert gone(pid)
    with pytest.raises(RuntimeError, match="closed"):
        grader.pool.ask("judged", NEEDS_ALGEBRA[0], "1")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_worker_ends_on_exceptions(error):
    pids = []

    def interrupted():
        with Grader() as grader:
            grader.grade(*NEEDS_ALGEBRA)
            pids.extend(grader.pool.pids())
            raise error

    with pytest.raises(error):
        interrupted()
    assert len(pids) == 1
    assert gone(pids[0])


@pytest.mark.slow
def test_a_deadline_kills_the_worker_and_the_next_answer_is_right():
    pool = Pool(1, deadline_s=0.5)
    assert pool.ask("judged", make_gold("2"), r"\sqrt{4}") is True
    (first,) = pool.pids()
    start = time.monotonic()
    with pytest.raises(WorkerTimeoutError):
        pool.ask("sleep", 60)
    assert time.monotonic() - start < 10
    assert gone(first)
    assert pool.ask("judged", make_gold("2"), r"\sqrt{4}") is True
    assert pool.pids() != [first]
    pool.close()


def test_a_time_out_is_a_status():
    with Grader(deadline_s=1e-9) as grader:
        verdict = grader.grade(*NEEDS_ALGEBRA)
    assert (verdict.status, verdict.score, verdict.method) == ("timeout", 0, "boxed")


@pytest.mark.slow
def test_the_deadline_does_not_count_the_start_of_a_worker_nor_waiting_for_one():
    pool = Pool(1, deadline_s=2.0)
    replies = []
    ask = lambda: replies.append(pool.ask("sleep", 1.2))  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()
    assert replies == [True] * 3


def test_a_death_is_tried_once_more_and_then_reported():
    pool = Pool(1, deadline_s=60)
    assert pool.ask("judged", make_gold("2"), r"\sqrt{4}") is True
    os.kill(pool.pids()[0], signal.SIGKILL)
    assert pool.ask("judged", make_gold("2"), r"\sqrt{4}") is True
    with pytest.raises(WorkerDiedError):
        pool.ask("exit")
    assert pool.ask("judged", make_gold("2"), r"\sqrt{4}") is True
    pool.close()


def test_a_worker_may_take_two_gibibytes_and_no_more():
    pool = Pool(1, deadline_s=60)
    assert pool.ask("allocate", 2**28) is True
    with pytest.raises(WorkerDiedError):
        pool.ask("allocate", 2**32)
    pool.close()


def test_any_thread_may_ask_and_a_thread_that_ends_leaves_the_worker():
    with Grader(workers=2) as grader:
        found = []
        for _ in range(2):
            thread = threading.Thread(target=lambda: found.append(grader.grade(*NEEDS_ALGEBRA).status))
            thread.start()
            thread.join()
        assert grader.grade(make_gold(r"\sqrt{8}"), r"\boxed{2\sqrt{2}}").status == "correct"
        assert found == ["correct", "correct"]
        assert len(grader.pool.pids()) == 1


def test_an_outer_alarm_still_rings():
    rung = []
    old = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    signal.setitimer(signal.ITIMER_REAL, 30)
    with Grader() as grader:
        grader.grade(*NEEDS_ALGEBRA)
    left = signal.setitimer(signal.ITIMER_REAL, 0)[0]
    handler = signal.signal(signal.SIGALRM, old)
    assert 0 < left < 30 or rung
    assert handler is not old


def test_many_keep_their_order():
    golds = [make_gold(str(n)) for n in range(40)]
    items = [(gold, rf"\boxed{{\sqrt{{{n**2 if n % 3 else n**2 + 1}}}}}") for n, gold in enumerate(golds)]
    with Grader(workers=2) as grader:
        assert [v.score for v in grader.grade_many(items)] == [int(n % 3 > 0) for n in range(40)]


def test_outcomes_are_remembered():
    with Grader() as grader:
        grader.grade(*NEEDS_ALGEBRA)
        grader.pool.close()
        assert grader.grade(*NEEDS_ALGEBRA).status == "correct"


SCRIPT = """
import os, sys, time
from delaysim.grading import Grader, make_gold
grader = Grader()
grader.grade(make_gold(r"\\sqrt{50}"), r"\\boxed{5\\sqrt{2}}")
print(*grader.pool.pids(), flush=True)
%s
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "raise ValueError", "sys.exit(3)", "os.kill(os.getpid(), 9)"])
def test_no_worker_outlives_its_interpreter(end):
    done = subprocess.run([sys.executable, "-c", SCRIPT % end], capture_output=True, text=True, timeout=120)
    (pid,) = map(int, done.stdout.split())
    assert gone(pid)


def test_a_script_needs_no_main_guard(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT % "")
    assert subprocess.run([sys.executable, path], capture_output=True, timeout=120).returncode == 0


def test_a_folder_of_the_user_does_not_stand_in_for_a_library(tmp_path, monkeypatch):
    for name in ("sympy", "math_verify", "random", "delaysim"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    with Grader() as grader:
        assert grader.grade(*NEEDS_ALGEBRA).status == "correct"


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"deadline_s": 0}, {"deadline_s": float("nan")}])
def test_settings_are_checked(wrong):
    with pytest.raises(ValueError, match="give"):
        Grader(**wrong)
