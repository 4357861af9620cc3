"""Page and figure of a study, from its committed file alone."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import studies_drop
import studies_routing
import studies_time

from delaysim.analysis.grid import spelled
from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.plots import BASE, clean, label_ends, save, wrapped
from delaysim.analysis.report.accuracy import cell_table
from delaysim.analysis.report.answer import Answer, Asked, budget_table, contrast_table, headline
from delaysim.analysis.report.blocks import Table
from delaysim.analysis.report.study import NAMES, Slice, Study
from delaysim.analysis.report.tables import markdown
from delaysim.analysis.stats import crossed

RESULTS = Path(__file__).parent.parent / "docs/results"
TEXT = {"estimator", "drop", "routing", "sampler.dtype", "run_id", "state", "updates", "times", "accuracy", "scores"}
TITLES = {
    "fixed_delay_table": "Three losses against a fixed delay",
    "async_lambda": "Three losses against length-coupled delays",
    "eps_grid": "Thresholds of TIC and GMC",
    "group_size": "Group size at an equal sample budget",
    "what_delay_buys": "What delay buys",
    "length_bias": "What dropping long responses does",
    "moe": "Replaying the experts of a mixture",
}
QUESTIONS = {
    "fixed_delay_table": """
The paper's fixed-delay table (GMC, TIC and GRPO at D = 0 to 512, 800 updates, one seed) asked of the tiny default in
240 updates. At D=0 the three losses are the same run, bit for bit.""",
    "async_lambda": """
The paper's simulated asynchronous suite, its coupling lam varied. C_gen is 20: mean delays of 19 to 34 updates are for
a run of 240 what 65 to 110 are for the paper's 800, where it measured 138 to 160. At lam=0 delays do not depend on
lengths.""",
    "eps_grid": """
The sweep that the paper lacks. TIC's threshold cuts single responses, GMC's the mean of a group: equal eps is not equal
strength, and `intervention` (share of responses whose coefficient is changed) says how strong each is.""",
    "group_size": """
The paper's table over G compared 8 prompts x G responses per update, so that a larger group also saw more data. Here
B*G is the same at every G.""",
    "what_delay_buys": """
Delays are coupled to lengths (lam=1, C_gen=20), and the look-ahead goes from synchronous (eta=0: the learner waits for
each mini-batch it asked for) to the one that balances generation and learner (auto). Every run makes 240 updates; what
differs is how old its data is, and how much simulated time it takes.""",
    "length_bias": """
Long responses finish last, so what drops by age or by time drops them first ([length_bias.md](../length_bias.md)).
GRPO under four ways to drop: none, the oldest completion beyond two mini-batches in the queue, groups older than 30
updates, groups that take longer than two mean responses. Delays are coupled to lengths (lam=1, C_gen=20).""",
    "moe": """
A mixture of experts whose sampler computes in bfloat16 and whose learner computes in float32 picks other experts for
some tokens ([moe.md](../moe.md)). Replayed at the update: nothing, the experts of the learner's own pass at launch
(R2), those of the sampler (R3). The control samples in float32. Behaviour log-probabilities are the learner's own at
launch in every run.""",
}


def write(name: str, table: Path, command: str) -> None:
    """docs/results/NAME.md and its figure."""
    rows = list(csv.DictReader(table.open()))
    study = Study(tuple(outcome(row) for row in rows), {})
    answer = Answer(study, Asked())
    FIGURES.get(name, draw_cells)(name, study, rows)
    (RESULTS / f"{name}.md").write_text(page(name, answer, rows, command))


def outcome(row: dict[str, str]) -> Outcome:
    """A run as its line tells it: two evaluations, the base and the mean of the last three."""
    values: dict[str, Any] = {key: value if key in TEXT else number(value) for key, value in row.items()}
    final = np.array([int(digit, 36) for digit in row["scores"]]) / values["samples"]
    return Outcome(
        run_id=row["run_id"],
        path=Path(row["run_id"]),
        settings={key: values[key] for key in KEYS if values.get(key) not in (None, "")}
        | {"suite": SUITES[bool(row["D"])]},
        seed=values["seed"],
        state=row["state"],
        collapsed=bool(values["collapsed"]),
        problems=tuple(f"{i}" for i in range(len(final))),
        shares=np.stack([np.full(len(final), values["base"]), final]),
        greedy=np.full(2, np.nan),
        axes={"updates": np.array([0.0, 240.0]), "sim_time": np.array([0.0, values["sim_time"]])},
        reached=240,
        moments={},
    )


KEYS = ("estimator", "D", "lam", "eps", "G", "B", "lr", "C_gen", "C_update", "eta", "drop", "routing", "sampler.dtype")
SUITES = {True: "fixed_delay", False: "simulated_async"}


def number(text: str) -> float | int | str | None:
    """A number as it was written, or auto; None for nothing."""
    if not text:
        return None
    if text == "auto":
        return text
    return float(text) if any(mark in text for mark in ".en") else int(text)


def page(name: str, answer: Answer, rows: list[dict[str, str]], command: str) -> str:
    """docs/results/NAME.md."""
    title, tables = TITLES[name], "\n\n".join(map(markdown, tables_of(answer)))
    measured = "\n\n".join(map(markdown, [*biases(answer.study, rows), measures(answer.study, rows)]))
    found = headline(answer)
    if name == "length_bias":
        found = studies_drop.answer(answer.study, rows)
    if name == "what_delay_buys":
        found, tables = studies_time.answer(rows), f"{markdown(studies_time.table(rows))}\n\n{tables}"
    if name == "moe":
        found, tables = studies_routing.answer(answer.study), routed(answer.study)
        measured = markdown(means(answer.study, rows, studies_routing.MEASURES, studies_routing.TEXT))
    return f"""# {title}

**{found}.**
{QUESTIONS[name]}

Made by `python analysis/studies.py {name}` from [{name}.csv]({name}.csv), one line per run:

    {command}

![accuracy of every cell]({name}.svg)

{tables}

{measured}
{reading(name)}
{MODELS.get(name, "Tiny default (0.13M parameters, chain sums)")}, {len(rows)} runs of 240 updates, lr 3e-4, nothing
tuned for any method.
Intervals are over seeds and problems both ([statistics.md](../statistics.md)); `delaysim compare` and `delaysim budget`
print the same of the run directories. One tiny model and one task: a screen, not a verdict on large ones.
"""


def reading(name: str) -> str:
    """What a person made of it, where somebody wrote it down."""
    place = RESULTS / f"{name}_reading.md"
    return f"\n{place.read_text()}" if place.exists() else ""


MODELS = {"moe": "Tiny mixture of experts (`model=tiny_moe`, 16 experts, top-2, chain sums)"}


def routed(study: Study) -> str:
    """What replaying experts did."""
    return "\n\n".join(map(markdown, studies_routing.tables(study)))


def tables_of(answer: Answer) -> Iterator[Table]:
    """Every cell, budgets, the primary endpoint, all differences."""
    yield cell_table(answer)
    if answer.budgets:
        yield budget_table(answer)
    if answer.areas:
        yield contrast_table(
            answer, answer.areas, f"Areas under accuracy over {answer.study.over}, the primary endpoint"
        )
    if answer.contrasts:
        at_the_end = [
            replace(contrast, matched={}) for contrast in answer.contrasts
        ]  # the file has no curve by problem
        yield contrast_table(answer, at_the_end, "Differences of final accuracy")


def biases(study: Study, rows: list[dict[str, str]]) -> Iterator[Table]:
    """What each drop policy did to lengths and rewards, where runs differ in it."""
    if len({row.get("drop") for row in rows}) > 1:
        text = (
            "Groups that were trained on against all that were generated, in the steady state: ratio of mean lengths, "
            "share trained of the shortest and of the longest tenth, KS distance of the lengths, ratio of mean rewards."
        )
        yield means(study, rows, BIASES, text)


BIASES = {
    "ratio": ("length ratio", "{:.3f}"), "shortest": ("shortest tenth", "{:.0%}"),
    "longest": ("longest tenth", "{:.0%}"), "ks": ("KS", "{:.3f}"), "dropped": ("dropped", "{:.0%}"),
    "delay_max": ("largest delay", "{:.0f}"), "reward_ratio": ("reward ratio", "{:.3f}"),
}  # fmt: skip


def measures(study: Study, rows: list[dict[str, str]]) -> Table:
    """What the runs of each cell looked like."""
    return means(study, rows, MEASURES, "Means over updates, then seeds.")


def means(study: Study, rows: list[dict[str, str]], columns: dict[str, tuple[str, str]], text: str) -> Table:
    """Columns of the file, as means over the seeds of each cell."""
    by_run = {row["run_id"]: row for row in rows}
    found = []
    for part, delay, level, cell in study.cells():
        of = [by_run[run.run_id] for run in cell.runs.values()]
        mean = {key: np.mean([float(row[key]) for row in of]) for key in columns}
        where = ", ".join(filter(None, (study.at(delay), part.name)))
        found.append((study.name(level), where, *(form.format(mean[key]) for key, (_, form) in columns.items())))
    heads = [head for head, _ in columns.values()]
    return Table(text, (study.by, "cell", *heads), tuple(found), left=2)


MEASURES = {
    "delay_mean": ("mean delay", "{:.1f}"), "version0_share": ("from the base", "{:.0%}"), "ess": ("ESS", "{:.2f}"),
    "kept": ("kept", "{:.2f}"), "intervention": ("intervention", "{:.3f}"), "length_mean": ("tokens", "{:.1f}"),
    "sim_time": ("sim time", "{:,.0f}"),
}  # fmt: skip


def draw_time(name: str, _study: Study, rows: list[dict[str, str]]) -> None:
    """Accuracy against updates and against simulated time."""
    studies_time.draw(rows, RESULTS / name)


def draw_cells(name: str, study: Study, _rows: list[dict[str, str]]) -> None:
    """Final accuracy of every cell, one line per level; the horizontal axis is what varies beside it."""
    key = next((key for key in study.loose if key in ("eps", "G")), study.over)
    figure, ax = plt.subplots(figsize=(6.4, 3.8))
    places = sorted({point(key, part, delay) for part, delay, _, _ in study.cells()})
    ends = {level: line(ax, study, level, key, places) for level in study.levels}
    ax.axhline(study.base, **BASE)
    ax.annotate("base", (1, study.base), xycoords=("axes fraction", "data"), fontsize=8, color="#666666", ha="right",
                va="bottom")  # fmt: skip
    ax.set_xticks(range(len(places)), [spelled(place) for place in places])
    ax.set_xlabel({"eps": "threshold eps", "G": "group size G, at B*G = 64"}.get(key, NAMES.get(key, key)))
    ax.set_ylabel("final pass@1")
    ax.set_ylim(0, 1.02)
    label_ends(ax, ends, gap=0.06)
    clean(ax)
    ax.set_title(wrapped(headline(Answer(study, Asked()))), loc="left", fontsize=10)
    seeds = ", ".join(map(str, study.seeds))
    figure.text(0.02, -0.04, f"Tiny default, 240 updates, seeds {seeds}: faint single seeds, bars 95 % intervals over "
                "seeds and problems.", fontsize=7.5, color="#444444", va="top")  # fmt: skip
    save(figure, str(RESULTS / name))
    plt.close(figure)


def draw_drops(name: str, study: Study, rows: list[dict[str, str]]) -> None:
    """Accuracy by drop policy."""
    studies_drop.draw(study, rows, RESULTS / name)


def draw_routing(name: str, study: Study, _rows: list[dict[str, str]]) -> None:
    """Accuracy by replay."""
    studies_routing.draw(study, RESULTS / name)


FIGURES = {"what_delay_buys": draw_time, "length_bias": draw_drops, "moe": draw_routing}
"""Studies with a figure of their own."""


def point(key: str, part: Slice, delay: Any) -> Any:
    """A cell's place on the axis."""
    return part.at.get(key, delay)


def line(ax: Any, study: Study, level: Any, key: str, places: list[Any]) -> tuple[float, float]:
    """Means, intervals and seeds of one level; where its line ends."""
    colour, marker = study.look(level)
    nudge = (study.levels.index(level) - (len(study.levels) - 1) / 2) * 0.05
    found = [(places.index(point(key, part, d)), cell) for part, d, own, cell in study.cells() if own == level]
    x = [place + nudge for place, _ in found]
    for at, (_, cell) in zip(x, found, strict=True):
        finals = [run.final for run in cell.runs.values()]
        ax.plot([at] * len(finals), finals, marker, color=colour, alpha=0.3, markersize=3, markeredgewidth=0)
    each = [crossed(cell.table()) for _, cell in found]
    ax.vlines(x, [max(e.low, 0) for e in each], [min(e.high, 1) for e in each], color=colour, linewidth=1)
    ax.plot(x, [e.mean for e in each], color=colour, marker=marker, markersize=4, linewidth=1.6)
    return len(places) - 1 + 0.15, each[-1].mean
