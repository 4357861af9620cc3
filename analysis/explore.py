"""A notebook over any directory of runs.

marimo edit analysis/explore.py -- --runs runs     # change it
marimo run analysis/explore.py -- --runs runs      # use it
python analysis/explore.py --runs runs             # run it once, headless
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="delaysim: runs")

with app.setup:
    import marimo as mo
    import matplotlib.pyplot as plt
    import numpy as np
    import pandas as pd

    from delaysim.analysis.grid import varying
    from delaysim.analysis.load import by_delay, load_runs
    from delaysim.analysis.outcomes import AXES, load_outcomes
    from delaysim.analysis.plots import clean, label, seed_band, style
    from delaysim.errors import UserError


@app.function
def method_names(runs):
    """Run id to NAME, or NAME:SETTINGS with those in which the runs of one estimator differ beside their delay."""
    names = {}
    for estimator in {run.settings["estimator"] for run in runs}:
        alike = [run for run in runs if run.settings["estimator"] == estimator]
        differ = varying(alike, ("suite", "D", "eta", "lam"))
        for run in alike:
            settings = ", ".join(f"{key}={run.settings.get(key)}" for key in differ)
            names[run.run_id] = f"{estimator}:{settings}" if differ else estimator
    return names


@app.cell
def _():
    folder = mo.ui.text(value=str(mo.cli_args().get("runs") or "runs"), label="Runs below", full_width=True)
    mo.vstack([mo.md("# Runs"), folder])
    return (folder,)


@app.cell
def _(folder):
    try:
        outcomes, problem = load_outcomes(folder.value), None
    except UserError as error:
        outcomes, problem = None, str(error)
    mo.stop(problem is not None, mo.callout(problem, kind="warn"))
    names = method_names(outcomes.runs)
    runs = pd.DataFrame(
        {
            "run_id": run.run_id,
            "path": str(run.path),
            "method": names[run.run_id],
            "delay": run.moments["delay_mean"],
            "seed": run.seed,
            "base": float(run.curve[0]),
            "final": run.final,
            "collapsed": run.collapsed,
            "sim_time": run.total("sim_time"),
        }
        for run in outcomes.runs
    )
    return names, outcomes, runs


@app.cell
def _(outcomes, runs):
    _left = ", ".join(f"{run} ({state})" for run, state in outcomes.unfinished.items())
    mo.vstack(
        [
            mo.md(f"{len(runs)} finished runs" + (f"; left out: {_left}" if _left else "")),
            mo.ui.table(runs, selection=None, page_size=12),
        ]
    )
    return


@app.cell
def _(runs):
    _most = runs["method"].value_counts(sort=True).index[:6].tolist()
    methods = mo.ui.multiselect(sorted(set(runs["method"])), value=_most, label="methods", full_width=True)
    methods
    return (methods,)


@app.cell
def _(methods, runs):
    shown = runs[runs["method"].isin(methods.value)]
    mo.stop(shown.empty, mo.md("Choose a method."))
    return (shown,)


@app.cell
def _(shown):
    _seeds = int(shown.groupby(["method", shown["delay"].round(1)])["seed"].nunique().min())
    _figure, _ax = plt.subplots(figsize=(7, 3.6))
    for _name, _of in shown.sort_values("delay").groupby("method"):
        _colour, _marker = style(_name)
        _mean = _of.groupby(_of["delay"].round(1))["final"].mean()
        _ax.plot(_of["delay"], _of["final"], _marker, color=_colour, alpha=0.35, markersize=4)
        _ax.plot(_mean.index, _mean, color=_colour, marker=_marker, label=label(_name))
    _ax.axhline(shown["base"].mean(), color="#888888", linewidth=0.8, linestyle="--")
    _ax.set(xlabel="realised mean delay [updates]", ylabel="final pass@1", xscale="symlog", ylim=(0, 1))
    _ax.set_xlim(0, 1.3 * max(1, shown["delay"].max()))
    _ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    clean(_ax)
    _warning = "**One seed somewhere: no ranking can be read off this.** " if _seeds < 2 else ""
    mo.vstack(
        [
            mo.md("## Accuracy against delay"),
            _figure,
            mo.md(f"{_warning}Faint: seeds. Dashed: the base. Intervals and verdicts: `delaysim compare`."),
        ]
    )
    return


@app.cell
def _(shown):
    axis = mo.ui.dropdown({name: key for key, name in AXES.items()}, value=AXES["updates"], label="against")
    _delays = sorted(shown["delay"].round(1).unique())
    at = mo.ui.dropdown({f"{delay:g}": delay for delay in _delays}, value=f"{_delays[-1]:g}", label="at mean delay")
    mo.vstack([mo.md("## Learning curves"), mo.hstack([axis, at], justify="start")])
    return at, axis


@app.cell
def _(at, axis, names, outcomes, shown):
    _ids = set(shown.loc[shown["delay"].round(1) == at.value, "run_id"])
    _at = [run for run in outcomes.runs if run.run_id in _ids]
    _figure, _ax = plt.subplots(figsize=(7, 3.6))
    for _name in sorted({names[run.run_id] for run in _at}):
        _of = [run for run in _at if names[run.run_id] == _name]
        _x = np.mean([run.axes[axis.value] for run in _of], axis=0)
        seed_band(_ax, _name, _x, [run.curve for run in _of])
        _ax.plot([], [], color=style(_name)[0], marker=style(_name)[1], label=label(_name))
    _ax.set(xlabel=AXES[axis.value], ylabel="pass@1", ylim=(0, 1))
    _ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    clean(_ax)
    _figure
    return


@app.cell
def _(runs, shown):
    _first = shown.sort_values("delay").groupby("method").tail(1)["run_id"].tolist()
    chosen = mo.ui.multiselect(runs["run_id"].tolist(), value=_first[:6], label="runs", full_width=True)
    mo.vstack([mo.md("## Importance ratios"), chosen])
    return (chosen,)


@app.cell
def _(chosen, runs):
    mo.stop(not chosen.value, mo.md("Choose a run."))
    _frames = [load_runs(path) for path in runs.set_index("run_id").loc[chosen.value, "path"]]
    updates = pd.concat([frames.updates for frames in _frames], ignore_index=True)
    groups = pd.concat([frames.groups for frames in _frames], ignore_index=True)
    return groups, updates


@app.cell
def _(updates):
    _columns = updates.select_dtypes("number").columns.drop("update").tolist()
    column = mo.ui.dropdown(_columns, value="ratio_max", label="per update")
    column
    return (column,)


@app.cell
def _(column, groups, names, updates):
    _figure, (_left, _right) = plt.subplots(1, 2, figsize=(10, 3.6))
    for _run, _rows in updates.groupby("run_id"):
        _left.plot(_rows["update"], _rows[column.value], color=style(names[_run])[0], linewidth=0.9)
    if updates[column.value].max() > 20 * max(updates[column.value].median(), 1e-9) > 0:
        _left.set_yscale("log")
    _left.set(xlabel="update", ylabel=column.value)
    tails = by_delay(groups)
    for _run, _rows in tails.groupby("run_id"):
        _colour, _marker = style(names[_run])
        _x = _rows["delay_from"].clip(lower=0.5)
        _right.plot(_x, _rows["ess"], color=_colour, marker=_marker, markersize=4, label=label(names[_run]))
        _right.plot(_x, _rows["kept"], color=_colour, linestyle=":")
    _right.set(xscale="log", xlabel="delay of the group, from [updates]", ylabel="ESS (solid), kept (dotted)")
    _right.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    clean(_left)
    clean(_right)
    _figure.tight_layout()
    mo.vstack([_figure, mo.ui.table(tails.round(4), selection=None, page_size=12)])
    return (tails,)


if __name__ == "__main__":
    app.run()
