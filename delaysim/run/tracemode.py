"""mode=trace: the clock alone, with drawn lengths. Seconds, no torch."""

import gc
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from delaysim.clock import TICKS, Clock, Law
from delaysim.clock.fast import REFERENCE, Finished, run_with
from delaysim.clock.ledger import Ledger
from delaysim.clock.lengths import KeyedLengths, LengthLaw, Lengths2D
from delaysim.clock.replay import Replay, replay_alone
from delaysim.clock.trace import group_rows, moments
from delaysim.files import read_json, write_json
from delaysim.run.account import read_account, write_account
from delaysim.run.account_lines import account_lines
from delaysim.run.clocks import replay_of
from delaysim.run.drawn import length_law, settled_law
from delaysim.run.owncount import own_count
from delaysim.run.progress import requested_delay
from delaysim.run.records import SCHEMA
from delaysim.run.tracefile import write_clock, write_trace
from delaysim.settings.config import REPLAY, Config
from delaysim.settings.configfile import save_config
from delaysim.settings.identity import identity
from delaysim.settings.replay import replay_text


def trace(cfg: Config, path: Path, console: Console) -> None:
    """Write a trace directory and print the delay's moments; a trace that is there already is kept."""
    if cfg.resume == "never" or not (path / "moments.json").exists():
        _write(cfg, path)
    _report(cfg, path, console)


def _write(cfg: Config, path: Path) -> None:
    drawn = length_law(cfg)
    law = settled_law(cfg, drawn)
    ledger, now, table, engine = _simulate(cfg, law, drawn)
    rows = group_rows(ledger)
    path.mkdir(parents=True, exist_ok=True)
    write_trace(path / "trace.parquet", rows, table)
    write_clock(path / "clock.parquet", ledger)
    in_flight, simulated = cfg.clock.in_flight == "account", cfg.suite_name != REPLAY
    write_account(path, ledger, rows, table, law, in_flight=in_flight, simulated=simulated)
    save_config(cfg, path / "config.yaml")
    trained = rows["update"][: len(table)] >= 0
    write_json(
        path / "manifest.json", {"schema": SCHEMA, "identity": identity(cfg), "law": asdict(law), "engine": engine}
    )
    found = moments(rows, law, now / TICKS)
    found["length_ratio"] = float(table[trained].mean() / table.mean())
    write_json(path / "moments.json", found)


def _simulate(cfg: Config, law: Law, drawn: LengthLaw) -> tuple[Ledger, int, Lengths2D, str]:
    """Ledger and last tick of the run, lengths [groups, G] of what was generated, the engine; the rest is let go."""
    lengths = KeyedLengths(drawn, cfg.G, cfg.seed, stat=law.stat, flat=cfg.lengths.flat)
    gc.disable()  # the clock makes millions of small objects and no cycles
    clock, engine = _run(cfg, law, lengths)
    gc.enable()
    generated = min(len(clock.ledger), law.consumable or len(clock.ledger))
    return clock.ledger, clock.now, lengths.of_ledger(clock.ledger, generated), engine


def _run(cfg: Config, law: Law, lengths: KeyedLengths) -> tuple[Clock | Finished | Replay, str]:
    """The run, and which engine ran it."""
    if cfg.suite_name == REPLAY:
        return replay_alone(replay_of(cfg, law)), "none, the delays are recorded"
    return run_with(cfg.clock.engine, law, lengths, cfg.seed)


def _report(cfg: Config, path: Path, console: Console) -> None:
    manifest, m = read_json(path / "manifest.json"), read_json(path / "moments.json")
    law = manifest["law"]
    steady = m["delay_mean_steady"]
    lines = [
        f"delay          mean {m['delay_mean']:.2f} (whole run), {'-' if steady is None else f'{steady:.2f}'} (steady)"
        f", requested {requested_delay(cfg)}",
        f"               sd {m['delay_sd']:.1f}, p5 {m['delay_p5']:g}, p50 {m['delay_p50']:g}, p95 {m['delay_p95']:g}"
        f", p99 {m['delay_p99']:g}, max {m['delay_max']:g}",
        f"               mean of delay^4: {m['delay4_mean']:.3g}",
        f"               {m['pre_queue_mean']:.2f} while generating, {m['in_queue_mean']:.2f} while waiting",
        f"delays         {replay_text(cfg)}"
        if cfg.suite_name == REPLAY
        else f"look-ahead     {law['look_ahead']} updates"
        + (f", L_ref {law['l_ref']:.1f} tokens" if law["lam"] else ""),
        f"sim time       {m['sim_time']:,.1f} units, {m['sim_time'] / cfg.updates:.3f} per update; "
        f"learner busy {m['busy']:.1%}",
        *account_lines(read_account(path), law, recorded=cfg.suite_name == REPLAY),
        *own_count(cfg, path),
        f"engine         {manifest.get('engine', REFERENCE)}",
        f"trace          {path / 'trace.parquet'}",
    ]
    for line in lines:
        console.print(line, markup=False)
