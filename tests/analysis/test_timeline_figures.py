"""What is drawn is what the clock recorded; the command says what it wrote, and what is wrong in one line."""

import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from clock.cases import WORKED_LAW, WORKED_LENGTHS
from clocked import clocked, write_clocked
from matplotlib.colors import to_hex
from settings import run, small_config

from delaysim.analysis.timeline import delays, frame, gantt, survival
from delaysim.analysis.timeline.record import read_record
from delaysim.analysis.timeline.window import asked, views, whole
from delaysim.cli.timeline import timeline
from delaysim.clock import TICKS, Law
from delaysim.errors import UserError
from delaysim.files import read_json


@pytest.fixture
def drawn(monkeypatch):
    """The figures as they are when they would be saved."""
    kept = []
    monkeypatch.setattr(frame, "save", lambda figure, stem: kept.append(figure))
    return kept


def bars(ax):
    return {(round(p.get_x(), 6), round(p.get_width(), 6), round(p.get_y() + p.get_height() / 2)) for p in ax.patches}


def test_the_gantt_chart_of_the_worked_example_by_hand(drawn):
    """Start, length and row of every bar; the learner's row is three above the last slot."""
    record = clocked(WORKED_LAW, WORKED_LENGTHS)[0]
    title = gantt.draw(record, [("", whole(record))], "x")
    slots = {
        (0, 6, 0),
        (8, 8, 0),
        (0, 2, 1),
        (5, 2, 1),
        (8, 2, 1),
        (11, 4, 1),
        (0, 4, 2),
        (5, 4, 2),
        (11, 4, 2),
        (0, 10, 3),
    }
    learner = {(4, 1, 7), (7, 1, 7), (10, 1, 7), (15, 1, 7)}
    assert bars(drawn[0].axes[0]) == slots | learner
    assert title == (
        "The learner trains 25% of the time and waits for groups 75%; at most 4 groups are generated at once"
    )


def test_bars_have_the_colour_of_their_delay(drawn):
    """Delays 0, 1, 2 are three colours, the two groups that were not trained on a fourth."""
    record = clocked(WORKED_LAW, WORKED_LENGTHS)[0]
    gantt.draw(record, [("", whole(record))], "x")
    look = {(p.get_x(), p.get_width()): to_hex(p.get_facecolor()) for p in drawn[0].axes[0].patches}
    by_delay = {
        delay: {look[span] for span in spans}
        for delay, spans in {0: [(0, 2), (0, 4), (5, 2)], 1: [(0, 6), (5, 4), (8, 2)], 2: [(0, 10)]}.items()
    }
    assert [len(colours) for colours in by_delay.values()] == [1, 1, 1]
    assert len(set.union(*by_delay.values()) | {look[8, 8]}) == 4
    assert look[8, 8] == to_hex(gantt.NOT_TRAINED["facecolor"])


def test_the_delay_along_the_run():
    update, delay = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]), np.array([0, 0, 1, 3, 2, 2, 4, 4, 9, 1])
    assert delays.along(update, delay, 5)[:2].tolist() == [[0, 1, 2, 3, 4], [0, 2, 2, 4, 5]]
    x, mean, low, high = delays.along(update, delay, 3)
    assert (x.tolist(), mean.tolist()) == ([0.5, 2.5, 4], [1, 3, 5])
    assert (low[0], high[0]) == tuple(np.percentile([0, 0, 1, 3], [5, 95]))


def test_titles_and_marks_have_the_measured_delay(drawn):
    record, _ = clocked(Law(40, 2, 3, 10.0, 1.0), [1], suite="fixed_delay")
    title = delays.draw(record, "x")
    assert title.startswith("Groups trained on are 2.85 updates old, 3.00 in the steady state (asked for: ")
    left, right = drawn[0].axes
    heights = {round(p.get_x() + p.get_width() / 2): p.get_height() for p in left.patches}
    assert heights == pytest.approx({0: 1 / 40, 1: 1 / 40, 2: 1 / 40, 3: 37 / 40})
    assert right.lines[0].get_ydata().tolist() == np.minimum(np.arange(40), 3).tolist()


def test_shares_of_each_tenth_add_up_and_follow_the_fates():
    """20 responses of lengths 1..20: of each pair the longer is dropped, but both of the last two."""
    lengths = np.arange(1, 21)[:, None]
    fate = np.array([0, 1] * 9 + [1, 1], np.int8)
    found = survival.shares(lengths, fate)
    assert found["trained"].tolist() == pytest.approx([0.5] * 9 + [0])
    assert (found["trained"] + found["never"]).tolist() == pytest.approx([1.0] * 10)


def test_survival_of_a_coupled_clock(drawn):
    """The bars stack to 1, their blue ones are weighted to the share trained, the title has the ratio of means."""
    longest = np.random.default_rng(0).integers(1, 40, 400).tolist()
    record, _ = clocked(Law(30, 2, 12, 10.0, 1.0, 1.0, 20.0), longest)
    title = survival.draw(record, "x")
    blue = [p.get_height() for p in drawn[0].axes[0].patches if to_hex(p.get_facecolor()) == "#0072b2"]
    trained = record.trained[: len(record.generated)]
    assert len(blue) == 10
    assert np.mean(blue) == pytest.approx(trained.mean())
    tops = {round(p.get_x(), 2): p.get_y() + p.get_height() for p in drawn[0].axes[0].patches}
    assert list(tops.values()) == pytest.approx([1.0] * 10)
    ratio = record.generated[trained].mean() / record.generated.mean()
    assert f"trained on over generated: {ratio:.3f}" in title


def test_views_are_the_start_and_the_steady_state():
    record, _ = clocked(Law(200, 2, 4, 10.0, 1.0), [1], suite="fixed_delay")
    (first, start), (second, steady) = views(record)
    assert (first, second) == ("the start", "the steady state")
    assert start.start == 0
    assert steady.start == record.poll[2 * 5]
    assert start.end - start.start == steady.end - steady.start == int(20 * TICKS + 4 * record.stop / 200)
    short, _ = clocked(Law(3, 2, 4, 10.0, 1.0), [1])
    assert views(short) == [("the whole run", whole(short))]


@pytest.mark.parametrize(("low", "high"), [(5, 5), (7, 3), (-1, 4), (16, 20), (float("nan"), 4)])
def test_windows_outside_the_run_are_refused(low, high):
    record = clocked(WORKED_LAW, WORKED_LENGTHS)[0]
    with pytest.raises(UserError, match="within the run, 0 to 16 units"):
        asked(record, low, high)


def test_a_directory_is_what_the_clock_recorded(tmp_path):
    for number, law in enumerate((WORKED_LAW, Law(9, 2, 3, 0.0, 0.3), Law(12, 3, 2, 7.3, 0.7, 1.5, 2.0, workers=4))):
        record, rows = clocked(law, WORKED_LENGTHS)
        write_clocked(tmp_path / str(number), record, rows)
        read = read_record(tmp_path / str(number))
        assert {name: column.tolist() for name, column in read.groups.items()} == {
            name: column.tolist() for name, column in record.groups.items()
        }
        for name in ("fate", "lengths", "poll", "publish"):
            assert getattr(read, name).tolist() == getattr(record, name).tolist()


def command(capsys, *arguments):
    """What it prints."""
    assert timeline(list(map(str, arguments))) == 0
    return capsys.readouterr().out.splitlines()


def refusal(*arguments):
    """What it says, in one line, of what it will not do."""
    with pytest.raises(UserError) as caught:
        timeline(list(map(str, arguments)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.slow
def test_a_training_runs_pictures(base_cache, tmp_path, capsys):
    run(small_config("D=2", "updates=6"), tmp_path / "run")
    out = command(capsys, tmp_path / "run")
    assert [line.split()[0] for line in out[:-1]] == ["perfetto.json", "gantt.svg,", "delays.svg,", "survival.svg,"]
    folder = tmp_path / "run/timeline"
    stems = ("gantt", "delays", "survival")
    assert {path.name for path in folder.iterdir()} == {
        "perfetto.json",
        *(f"{s}.{e}" for s in stems for e in ("svg", "png")),
    }
    found = json.loads((folder / "perfetto.json").read_text())["traceEvents"]
    updates = [e for e in found if e["name"].startswith("update ")]
    busy = read_json(tmp_path / "run/moments.json")["busy"]
    assert sum(e["dur"] for e in updates) / (updates[-1]["ts"] + updates[-1]["dur"]) == pytest.approx(busy)
    rows = [json.loads(line) for line in (tmp_path / "run/updates.jsonl").read_text().splitlines()]
    assert [e["ts"] for e in found if e["name"].startswith("version ")] == [r["sim_time"] * 1000 for r in rows]


@pytest.mark.slow
def test_the_same_run_is_the_same_bytes(tmp_path, capsys):
    write_clocked(tmp_path / "t", *clocked(WORKED_LAW, WORKED_LENGTHS))
    for folder in ("a", "b"):
        command(capsys, tmp_path / "t", "-o", tmp_path / folder, "--gzip")
    found = [{path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()} for folder in ("a", "b")]
    assert found[0] == found[1]
    assert len(found[0]) == 7


def test_too_many_groups_for_one_file_are_said_or_refused(tmp_path, capsys, monkeypatch):
    """Polls at 5..8, 11..14, 17..20: steady from 17, where 6 groups are out and two are launched at each publish."""
    monkeypatch.setattr("delaysim.cli.timeline.MOST", 30)
    write_clocked(tmp_path / "t", *clocked(Law(60, 2, 3, 5.0, 1.0), [1], suite="fixed_delay"))
    out = command(capsys, tmp_path / "t", "--only", "perfetto")
    assert out[1].split(None, 1)[1].startswith("17 to 36 only: 126 groups are more than a viewer takes")
    too_much = refusal(tmp_path / "t", "--only", "perfetto", "--from", 17, "--to", 60)
    assert "a viewer takes 30; --to 36 would do" in too_much
    out = command(capsys, tmp_path / "t", "--only", "perfetto", "--from", 17, "--to", 36)
    assert out[0].split()[1] == "30"


def test_what_is_missing_is_said_in_one_line(tmp_path, capsys):
    assert "no trace.parquet; mode=trace writes one" in refusal(tmp_path / "nothing")
    write_clocked(tmp_path / "t", *clocked(WORKED_LAW, WORKED_LENGTHS))
    (tmp_path / "file").write_text("")
    assert "give a folder that can be made" in refusal(tmp_path / "t", "-o", tmp_path / "file/x")
    assert "0 to 16 units" in refusal(tmp_path / "t", "--from", 12, "--to", 3)
    assert not (tmp_path / "t/timeline").exists()
    (tmp_path / "t/trace.parquet").write_bytes(b"PAR1 torn")
    assert "write the trace or copy the run again" in refusal(tmp_path / "t")
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_no_torch_is_imported(tmp_path):
    """The process ends with an error if it touches torch or transformers."""
    write_clocked(tmp_path / "t", *clocked(WORKED_LAW, WORKED_LENGTHS))
    for name in ("torch", "transformers"):
        (tmp_path / "guard" / name).mkdir(parents=True)
        (tmp_path / "guard" / name / "__init__.py").write_text(f"raise SystemExit('{name} was imported')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'guard')!r}); from delaysim.__main__ import main; main()"
    arguments = [sys.executable, "-c", code, "timeline", tmp_path / "t", "--only", "perfetto", "delays"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 3


def test_a_trace_from_before_groups_could_be_dropped_is_read(tmp_path):
    record, rows = clocked(WORKED_LAW, WORKED_LENGTHS)
    write_clocked(tmp_path, record, rows)
    (tmp_path / "clock.parquet").unlink(missing_ok=True)
    table = pq.read_table(tmp_path / "trace.parquet")
    late = [name for name in ("prompt", "submit", "ready", "dropped") if name in table.column_names]
    pq.write_table(table.drop_columns(late), tmp_path / "trace.parquet")
    read = read_record(tmp_path)
    assert read.groups["ready"].tolist() == record.groups["done"].tolist()
    assert read.groups["prompt"].tolist() == list(range(10))
    assert (read.poll.tolist(), read.publish.tolist()) == (record.poll.tolist(), record.publish.tolist())
