"""One log format per file: `SYSTEM`, its name; `PATTERNS` of its files; `read(files, tally)`, which yields the rows.

A format's `choose(folder)`, where it has one, picks the files in a directory; else those that fit PATTERNS. The format
`csv` has no system, and its `read` takes the names of columns too.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType


@cache
def discover() -> dict[str, ModuleType]:
    """Every format by name, sorted; the name is the file's, without a trailing underscore."""
    stems = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("__"))
    return {stem.rstrip("_"): import_module(f"{__name__}.{stem}") for stem in stems}
