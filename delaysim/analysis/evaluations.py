"""What `delaysim evaluate` found of runs: scores on several sets, ready to be compared like the runs themselves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.rowfiles import read_columns
from delaysim.errors import UserError
from delaysim.files import read_json
from delaysim.run.benchmark import MANIFEST, ROWS

ASKED = ("samples", "problems", "mode", "temperature", "max_new_tokens", "instruction")
COLUMNS = ("set", "problem", "cluster", "greedy", "score")


def load_evaluations(root: Path) -> list[Outcome]:
    """The evaluations of runs at or below `root`; those of models that no run trained are left out.

    Raises UserError where there is none.
    """
    found = [_outcome(file.parent) for file in sorted(root.rglob(MANIFEST)) if "of" in read_json(file)]
    if not found:
        raise UserError(f"{root}: no evaluation of a run here or below; one is made with delaysim evaluate RUN_DIR")
    return found


def _outcome(folder: Path) -> Outcome:
    manifest = read_json(folder / MANIFEST)
    of, identity = manifest["of"], manifest["identity"]
    scores = _scores(read_columns(folder / ROWS, COLUMNS))
    values = scores["score"].to_numpy(float)
    reached = identity["model"]["update"]
    return Outcome(
        run_id=of["run"],
        path=folder,
        settings=of["settings"] | _asked(identity),
        seed=of["seed"],
        state="done",
        collapsed=False,
        problems=tuple(scores["set"] + "/" + scores["problem"]),
        shares=np.stack([np.zeros_like(values), values]),
        greedy=np.array([np.nan, scores["greedy"].mean()]),
        axes={"updates": np.array([0.0, reached])},
        reached=reached,
        moments={},
        sets=tuple(scores["set"]),
        clusters=tuple(scores["cluster"]),
    )


def _scores(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per problem, in order: mean score over sampled responses (the greedy one where none are), and greedy."""
    keys = ["set", "problem", "cluster"]
    rows = rows.astype(dict.fromkeys(keys, str))
    greedy = rows["greedy"].to_numpy(bool)
    sampled = rows[~greedy] if not greedy.all() else rows
    mean = sampled.groupby(keys, sort=False)["score"].mean().reset_index()
    return mean.assign(greedy=rows[greedy]["score"].to_numpy())


def _asked(identity: Mapping[str, Any]) -> dict[str, Any]:
    """How the sets were asked: two evaluations compare where it is the same."""
    tolerances = identity.get("rel_tol", {})
    asked = {key: identity.get(key) for key in ASKED} | {
        "sets": ",".join(sorted(identity["sets"])),
        "rel_tol": ",".join(f"{name}={tolerances[name]:g}" for name in sorted(tolerances) if tolerances[name]),
        "template": identity["model"].get("template"),
        "sampler": identity.get("sampler", {}).get("kind"),  # the noise of two samplers is not shared
    }
    return {f"asked.{key}": value for key, value in asked.items()}


def require_asked_alike(evaluations: Sequence[Outcome]) -> None:
    """Raise UserError where one was asked otherwise than another: their difference would not be the runs' own."""
    for key in [key for key in evaluations[0].settings if key.startswith("asked.")] if evaluations else []:
        found = sorted({str(one.settings[key]) for one in evaluations})
        if len(found) > 1:
            raise UserError(
                f"the evaluations were not asked alike: {key} is {' and '.join(found)}; choose with "
                f"--where {key}=VALUE, or evaluate again"
            )
