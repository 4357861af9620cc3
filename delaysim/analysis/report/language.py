"""How the token ids that a run kept become text again: without torch, without a download."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import try_to_load_from_cache

from delaysim.analysis.outcomes import Outcome
from delaysim.data import resolve_model_path
from delaysim.errors import UserError
from delaysim.settings.configfile import load_config
from delaysim.tasks.chain import CHARACTERS, Chain

Decode = Callable[[Sequence[int]], str]
FILE = "tokenizer.json"
KEPT = 4
"""Problems whose responses are kept as token ids."""


@dataclass(frozen=True)
class Language:
    """A run's."""

    decode: Decode
    note: str = ""
    """Why ids stay ids, where they do."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Problem to its text, where the task makes its problems itself."""


def language_of(run: Outcome) -> Language:
    """The tiny model's characters; a pretrained model's tokenizer where its file is on this machine."""
    if "model.path" not in run.settings:
        return Language(characters, prompts=_prompts(run))
    file = _tokenizer_file(run)
    if file is None:
        return Language(_ids, "The tokenizer of this model is not on this machine: token ids stand in place of text.")
    return Language(_tokenizer(file))


def characters(tokens: Sequence[int]) -> str:
    """The tiny model's text: three special tokens, then the characters of the chain task."""
    table = ["<pad>", "<bos>", "", *CHARACTERS]
    return "".join(table[token] if token < len(table) else f"<{token}>" for token in tokens)


def _ids(tokens: Sequence[int]) -> str:
    return " ".join(map(str, tokens))


def _tokenizer(file: Path) -> Decode:
    from tokenizers import Tokenizer  # comes with transformers and needs none of it

    tokenizer = Tokenizer.from_file(str(file))
    return lambda tokens: str(tokenizer.decode(list(tokens), skip_special_tokens=True))


def _tokenizer_file(run: Outcome) -> Path | None:
    """In the model's directory, or in the hub's cache; None where it is in neither, as for one GGUF file."""
    try:
        path = load_config(run.path / "config.yaml").model.path
        place = resolve_model_path(path)
    except UserError:  # moved since
        return None
    if place is None:
        cached = try_to_load_from_cache(path, FILE)
        return Path(cached) if isinstance(cached, str) else None
    file = place / FILE
    return file if file.is_file() else None


def _prompts(run: Outcome) -> dict[str, str]:
    if run.settings["task"] != "chain":
        return {}
    task = Chain(int(run.settings["task.min_terms"]), int(run.settings["task.max_terms"]))
    return {problem.id: problem.prompt for problem in task.held_out(KEPT)}
