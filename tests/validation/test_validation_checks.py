"""The checks pass on this clock, and are missed by a broken one."""

import json
from heapq import heapreplace
from pathlib import Path

import numpy as np
import pytest

from delaysim.__main__ import entry
from delaysim.cli import validate as command
from delaysim.clock import Law, gate, generation, law
from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.trace import run_alone
from delaysim.validation import checks as listed
from delaysim.validation.check import outcomes
from delaysim.validation.page import cells
from delaysim.validation.services import EXPONENTIAL, UNIT

EVERY = listed.checks()
PAGE = Path(__file__).parents[2] / "docs" / "validation.md"
LIGHT = ("fixed delay", "no coupling", "cap law")


def quick(*laws):
    return [check for check in EVERY if check.quick and check.law in laws]


def missed(*laws):
    return [outcome.check.law for outcome in outcomes(quick(*laws), len(EVERY)) if not outcome.passed]


def written(checks):
    page = PAGE.read_text()
    return [f"| {' | '.join(cells(outcome))} |" in page for outcome in outcomes(checks, len(EVERY))]


@pytest.mark.slow
def test_the_page_is_what_the_command_writes():
    assert all(written(quick(*LIGHT)))


@pytest.mark.slow
def test_the_page_has_every_quick_row():
    assert all(written([check for check in EVERY if check.quick]))


def test_the_page_has_every_check_and_no_miss():
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")][2:]
    assert [(row[0][2:], row[1]) for row in rows] == [(check.law, check.setting) for check in EVERY]
    assert all(row[-1] == "ok |" for row in rows)


@pytest.mark.parametrize("servers", [1, 3])
def test_a_queue_is_first_come_first_served_to_the_tick(servers):
    """Kiefer and Wolfowitz: a customer starts on arrival or when the first server is free, whichever is later."""
    setting = Law(60, 50, None, 1.0, 1e-6, 1.0, UNIT, t_min=1e-6, workers=servers, arrivals=0.9 * servers)
    ledger = run_alone(setting, KeyedLengths(EXPONENTIAL, 1, seed=4)).ledger
    c, free = ledger.columns(), [0] * servers
    for group in range(len(ledger)):
        assert c["launch"][group] == max(c["submit"][group], free[0])
        heapreplace(free, ledger.due[group])
    gaps = np.diff(c["submit"][:3000]) / 1e6 * 0.9 * servers
    assert (gaps.mean(), gaps.std()) == pytest.approx((1, 1), abs=0.06)


def one_more(method):
    return lambda self, *arguments: method(self, *arguments) + 8


@pytest.mark.slow
def test_a_gate_that_lets_one_mini_batch_more_in_is_noticed(monkeypatch):
    monkeypatch.setattr(gate.Gate, "free", one_more(gate.Gate.free))
    assert set(missed(*LIGHT)) == set(LIGHT)


@pytest.mark.slow
def test_slower_service_is_noticed(monkeypatch):
    duration = Law.duration
    monkeypatch.setattr(Law, "duration", lambda self, size: round(1.1 * duration(self, size)))
    assert missed("M/M/1", "M/G/1", "M/D/4", "machine repairman") == ["M/M/1", "M/G/1", "M/D/4", "machine repairman"]


@pytest.mark.slow
def test_a_server_too_many_is_noticed(monkeypatch):
    free = generation.Timers.free
    monkeypatch.setattr(generation.Timers, "free", property(lambda self: free.fget(self) + 1))
    assert missed("M/M/1", "M/D/4", "machine repairman") == ["M/M/1", "M/D/4", "machine repairman"]


@pytest.mark.slow
def test_a_queue_without_its_limit_is_noticed(monkeypatch):
    monkeypatch.setattr(law.Law, "queue_limit", None)
    assert missed("staleness formula") == ["staleness formula"]


@pytest.fixture
def few(monkeypatch):
    """Only checks that take no time; the command reads the list from its module."""
    monkeypatch.setattr(listed, "checks", lambda: tuple(quick("fixed delay")))


@pytest.mark.usefixtures("few")
def test_a_miss_is_printed_and_is_the_exit_code(monkeypatch, capsys):
    assert command.validate(["--quick"]) == 0
    assert "5 of 5 closed forms met\n" in capsys.readouterr().out
    monkeypatch.setattr(gate.Gate, "free", one_more(gate.Gate.free))
    assert command.validate(["--quick"]) == 1
    out = capsys.readouterr().out
    assert "0 of 5 closed forms met, 5 MISSED" in out
    assert out.count(" MISS ") == 5


@pytest.mark.usefixtures("few")
def test_every_format_says_the_same(capsys):
    told = {}
    for name in ("json", "csv", "md"):
        assert command.validate(["--format", name]) == 0
        told[name] = capsys.readouterr().out
    values = json.loads(told["json"])
    assert [row["expected"] for row in values] == pytest.approx([0, 0.99875, 31.34, 117.68, 347.84])
    assert all(row["passed"] and row["half_width"] == 0 for row in values)
    header, *lines = told["csv"].splitlines()
    assert header == "law,setting,what,expected,simulated,half_width,level,error,tolerance,passed"
    assert [line.split(",")[0] for line in lines] == ["fixed delay"] * 5
    assert '"D 512, N 800"' in lines[4]
    assert "| fixed delay | D 32, N 800 | mean delay | 31.34 | 31.34 |  | +0.00% |  | ok |" in told["md"]


def test_an_unknown_format_is_refused(capsys):
    with pytest.raises(SystemExit):
        entry(["validate", "--format", "xml"])
    assert "invalid choice: 'xml'" in capsys.readouterr().err
