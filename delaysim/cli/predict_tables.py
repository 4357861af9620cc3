"""What `delaysim predict` prints of its own predictions."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from delaysim.clock.lengths import Lognormal
from delaysim.predict.ask import Choice, sentence, short
from delaysim.predict.costs import Points
from delaysim.predict.inputs import Question
from delaysim.run.progress import plain_console

if TYPE_CHECKING:
    from delaysim.predict.join import Accuracy, Line

WIDEST = 110
"""Columns that any table needs at most."""
MOST_POINTS = 6
"""Rows of a table of costs that are printed."""


def row(choice: Choice, asked: Question) -> dict[str, Any]:
    """A prediction as one flat row."""
    one = choice.prediction
    shares = {
        f"{name}_{part}": getattr(of, part)
        for name, of in (("trainer", one.trainer), ("rollout", one.rollout))
        for part in ("busy", "sync", "idle")
    }
    money = {} if asked.price is None else {"cost_per_update": asked.price * one.gpu_hours}
    return {
        "operation": one.cell.operation.name, "eta": one.cell.operation.look_ahead,
        "trainer_gpus": one.cell.trainer, "rollout_gpus": one.cell.rollout, "front": choice.on_front,
        "seconds_per_update": one.seconds, "seconds_se": one.error, "seconds_bound": choice.bound,
        "updates_per_hour": one.updates_per_hour, "samples_per_hour": one.samples_per_hour,
        "tokens_per_s": one.tokens_per_second, **shares, "rollout_use": one.use,
        "delay_mean": one.delay_mean, "delay_p95": one.delay_p95, "delay_max": one.delay_max,
        "gpu_hours_per_update": one.gpu_hours, **money, "held_by": choice.held_by,
    }  # fmt: skip


def joined_row(line: "Line") -> dict[str, Any]:
    """A line of accuracy by the hour as one flat row."""
    one = line.prediction
    at = {
        f"{name}_at_{hour:.4g}h": None if found is None else value(found)
        for hour, found in line.at.items()
        for name, value in (("accuracy", lambda a: a.mean), ("half_width", lambda a: a.half_width))
    }
    head = {"operation": one.cell.operation.name, "split": one.cell.split, "updates_per_hour": one.updates_per_hour}
    return {
        "estimator": line.estimator,
        **head,
        "delay_mean": one.delay_mean,
        "delay_of_runs": line.stands_for,
        "staler": line.staler,
        **at,
    }


def document(asked: Question, choices: Sequence[Choice], lines: "Sequence[Line]") -> dict[str, Any]:
    """Everything, for programs."""
    costs = asked.costs
    return {
        "answer": sentence(choices),
        "costs": {
            "gpus": asked.gpus, "B": costs.work.groups, "G": costs.work.group_size, "speed": costs.rollout.speed,
            "slots": costs.rollout.slots, "trainer": costs.trainer.seconds, "scaling": costs.trainer.scaling,
            "sync": costs.sync, "price": asked.price, "sources": dict(costs.sources),
        },
        "predictions": [row(choice, asked) for choice in choices],
        "accuracy": [joined_row(line) for line in lines],
    }  # fmt: skip


def show(asked: Question, choices: Sequence[Choice], lines: "Sequence[Line]") -> None:
    """The inputs, the answer, the tables, and what the words mean."""
    console = plain_console()
    console.width = max(console.width, WIDEST)  # a narrow terminal wraps lines, and loses none of a table
    said = [*(f"{label:15}{text}" for label, text in _inputs(asked)), "", sentence(choices), ""]
    _say(console, said)
    console.print(_speeds(asked, choices))
    _say(console, ["* no other is as fast and as fresh; a delay counts updates", ""])
    console.print(_gpus(choices))
    error = max(choice.prediction.error / choice.prediction.seconds for choice in choices)
    _say(console, [
        "% of the time; busy: training, or any response in generation; use: tokens/s made, of all slots taken",
        "held by trainer, rollout: within 5 % of their limit; look-ahead: of neither, eta admits too few groups",
        f"steady state of the clock; standard error of a speed at most {error:.1%}",
        "eta bounds the mean delay, not the largest",
    ])  # fmt: skip
    if lines:
        _say(console, ["", *_joined_words(lines)])
        console.print(_joined(lines))


def caption(asked: Question) -> str:
    """What a figure rests on."""
    said = "; ".join(f"{label}: {text}" if label else text for label, text in _inputs(asked))
    return "\n".join(wrap(f"Grey line: no other is as fast and as fresh. Labels: trainer:rollout GPUs. {said}.", 125))


def _say(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False)


def _inputs(asked: Question) -> Iterator[tuple[str, str]]:
    """Label and text of everything that was put in."""
    costs, work = asked.costs, asked.costs.work
    law, drawn = work.lengths, "recorded ones"
    if isinstance(law, Lognormal):
        drawn = f"lognormal, mean {law.mean:g} before a cap of {law.cap:,}, sigma {law.sigma:g}"
    yield "work", f"{work.groups} groups of {work.group_size} = {work.samples:,} responses an update"
    yield "lengths", f"{drawn}{_source(asked, 'lengths')}"
    speed = _points(costs.rollout.speed, "tokens/s", "with", "response")
    yield "rollout GPU", f"{speed}; at most {costs.rollout.slots:,} at once{_source(asked, 'speed')}"
    seconds = _points(costs.trainer.seconds, "s an update", "on", "GPU")
    yield "trainer", f"{seconds}{_source(asked, 'trainer')}"
    if assumed := _assumed(asked):
        yield "", assumed
    yield "weight sync", f"{costs.sync:.3g} s{_source(asked, 'sync')}"


def _source(asked: Question, key: str) -> str:
    found = asked.costs.sources.get(key, "default")
    return "" if found == "given" else f" ({found})"


def _assumed(asked: Question) -> str | None:
    """The scaling assumption, where a split rests on it."""
    trainer = asked.costs.trainer
    counts = [count for count in (*asked.trainer_gpus, asked.gpus) if not trainer.measured(count)]
    if not counts:
        return None
    law = "linear scaling" if trainer.scaling == 1 else f"seconds going with GPUs^-{trainer.scaling:g}"
    inside = len(trainer.seconds) > 1 and any(
        trainer.seconds[0][0] < count < trainer.seconds[-1][0] for count in counts
    )
    between = "straight lines in log-log between rows, " if inside else ""
    return f"other numbers of GPUs by assumption: {between}{law}{' beyond' if inside else ''}"


def _points(table: Points, unit: str, word: str, noun: str) -> str:
    """Rows in words: the first with unit and noun, the others as two numbers."""
    (count, value), *others = table
    shown = [
        f"{value:,.4g} {unit} {word} {count:g} {noun}{'' if count == 1 else 's'}",
        *(f"{y:,.4g} {word} {x:g}" for x, y in others),
    ]
    if len(shown) > MOST_POINTS:
        shown = [*shown[: MOST_POINTS - 1], "...", shown[-1]]
    return ", ".join(shown)


def _new(left: int, *columns: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place < left else "right", no_wrap=True, vertical="bottom")
    return table


def _speeds(asked: Question, choices: Sequence[Choice]) -> Table:
    money = [] if asked.price is None else ["cost/\nupdate"]
    table = _new(
        3, "", "operation", "trainer:\nrollout", "updates\nper h", "samples\nper h", "tokens\nper s",
        "delay\nmean", "\np95", "\nmax", "GPU-h/\nupdate", *money,
    )  # fmt: skip
    for choice in choices:
        one = choice.prediction
        paid = [] if asked.price is None else [f"{asked.price * one.gpu_hours:,.2f}"]
        table.add_row(
            "*" if choice.on_front else "", one.cell.operation.name, one.cell.split, short(one.updates_per_hour),
            f"{one.samples_per_hour:,.0f}", f"{one.tokens_per_second:,.0f}",
            f"{one.delay_mean:.2f}", f"{one.delay_p95:g}", f"{one.delay_max:g}", f"{one.gpu_hours:.3g}", *paid,
        )  # fmt: skip
    return table


def _gpus(choices: Sequence[Choice]) -> Table:
    table = _new(
        3, "", "operation", "trainer:\nrollout", "trainer\nbusy", "GPUs\nsync", "%\nidle", "rollout\nbusy",
        "GPUs\nsync", "%\nidle", "\nuse", "held by",
    )  # fmt: skip
    table.columns[-1].justify = "left"
    for choice in choices:
        one = choice.prediction
        shares = [f"{100 * part:.1f}" for of in (one.trainer, one.rollout) for part in (of.busy, of.sync, of.idle)]
        mark = "*" if choice.on_front else ""
        name = one.cell.operation.name
        table.add_row(mark, name, one.cell.split, *shares, f"{100 * one.use:.0f}", choice.held_by)
    return table


def _joined_words(lines: "Sequence[Line]") -> Iterator[str]:
    yield "accuracy by the hour: pass@1 of the given runs after as many updates as the fastest split makes by then"
    yield "only delay links the two: the runs are of their own model and task; nothing is extrapolated"
    if any(line.staler for line in lines):
        yield ">: no run is near this delay; these have more, which gives no more accuracy unless delay helps"
    if any(None in line.at.values() for line in lines):
        yield "-: the runs end before, or all have less delay"


def _joined(lines: "Sequence[Line]") -> Table:
    hours = list(lines[0].at)
    table = _new(2, "estimator", "operation", "delay", "of\nruns", *(f"\n{_time(hour)}" for hour in hours))
    table.columns[4].header = f"accuracy at\n{_time(hours[0])}"
    for line in lines:
        one = line.prediction
        known = "-" if line.stands_for is None else f"{'> ' if line.staler else ''}{line.stands_for:g}"
        cells = [_accuracy(found) for found in line.at.values()]
        table.add_row(line.estimator, one.cell.operation.name, f"{one.delay_mean:.2f}", known, *cells)
    return table


def _time(hours: float) -> str:
    """In the unit that has a number above 1."""
    for unit, parts in (("h", 1), ("min", 60)):
        if hours * parts >= 1:
            return f"{hours * parts:.3g} {unit}"
    return f"{hours * 3600:.3g} s"


def _accuracy(found: "Accuracy | None") -> str:
    if found is None:
        return "-"
    return f"{found.mean:.3f}" + ("" if found.seeds == 1 else f" ±{found.half_width:.3f}")
