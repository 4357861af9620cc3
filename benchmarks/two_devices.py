"""What a second process buys: the same run with the sampler in the learner's process and in its own, in turn.

python benchmarks/two_devices.py [--rounds 3]
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median

from delaysim.run.progress import Display
from delaysim.run.records import read_rows
from delaysim.run.runner import train
from delaysim.settings.config import Config

COLUMNS = ("wall_s", "generate_s", "sampler_s", "train_s")
SKIPPED = 20
"""Updates of warm-up, and of waiting for the first groups."""


def configuration(devices: str, updates: int, folder: str) -> Config:
    """The tiny default at a delay that lets the learner go on at once."""
    from hydra import compose, initialize_config_dir

    from delaysim.cli.compose import to_config
    from delaysim.settings.places import conf_dir

    words = [
        "+suite=fixed_delay",
        "D=16",
        "C_gen=1",
        f"updates={updates}",
        f"devices={devices}",
        "evaluation.every=null",
    ]
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return to_config(
            compose("config", [*words, f"runs_dir={folder}", "evaluation.problems=8", "record.ratios=none"])
        )


def one_round(devices: str, updates: int) -> dict[str, float]:
    """Median seconds an update, by part."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        assert train(configuration(devices, updates, folder), path, Display("quiet")).state == "done"
        rows = list(read_rows(path / "updates.jsonl"))[SKIPPED:-SKIPPED]
    return {column: median(row.get(column, 0.0) for row in rows) for column in COLUMNS}


def main() -> None:
    """Rounds in turn; medians and the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=80)
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {"[cpu]": [], "[cpu,cpu]": []}
    for _ in range(options.rounds):
        for devices, rounds in found.items():
            rounds.append(one_round(devices, options.updates))
    for devices, rounds in found.items():
        parts = {column: median(each[column] for each in rounds) for column in COLUMNS}
        print(
            f"devices={devices:<9} " + ", ".join(f"{name[:-2]} {1e3 * value:.1f} ms" for name, value in parts.items())
        )
    ratios = [one["wall_s"] / two["wall_s"] for one, two in zip(*found.values(), strict=True)]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"updates/s with two processes: {median(ratios):.2f} times those with one ({spread})")


if __name__ == "__main__":
    main()
