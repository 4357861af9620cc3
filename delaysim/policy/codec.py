"""Text to token ids and back, for the two kinds of model."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from delaysim.errors import UserError
from delaysim.policy.rollout import Ids
from delaysim.tasks.base import Problem
from delaysim.tasks.chain import CHARACTERS
from delaysim.tasks.prompts import Examples, check_template, fill, messages


class Codec(Protocol):
    """What sampler and tasks need of a tokenizer."""

    stop_ids: frozenset[int]
    """Tokens that end a response."""
    vocabulary: int

    def encode_prompt(self, prompt: str, instruction: str = "", examples: Examples = ()) -> Ids:
        """Token ids of a problem and what is asked of it, everything before the response included."""
        ...

    def decode(self, tokens: Sequence[int] | Ids) -> str:
        """Text of a response, without its stop token."""
        ...


def prompt_of(codec: Codec, problem: Problem) -> Ids:
    """Token ids of a task's problem."""
    return codec.encode_prompt(problem.prompt, problem.instruction, problem.examples)


class CharacterCodec:
    """One token per character of the chain task, after <pad>, <bos> and <eos>."""

    BOS, EOS = 1, 2

    def __init__(self) -> None:
        self._id = {character: i for i, character in enumerate(CHARACTERS, 3)}
        self._text = dict(enumerate(["<pad>", "<bos>", "", *CHARACTERS]))
        self.stop_ids = frozenset([self.EOS])
        self.vocabulary = len(self._text)

    def encode(self, text: str) -> list[int]:
        """Token ids of the characters alone. Raises UserError on a character the tiny model does not know."""
        try:
            return [self._id[character] for character in text]
        except KeyError as error:
            raise UserError(
                f"the tiny model knows the characters {CHARACTERS} only, not {error}: use task=chain, or model=smollm2"
            ) from None

    def encode_prompt(self, prompt: str, instruction: str = "", examples: Examples = ()) -> Ids:
        shown = "".join(question + answer for question, answer in examples)
        return np.array([self.BOS, *self.encode(shown + prompt + instruction)], np.int32)

    def decode(self, tokens: Sequence[int] | Ids) -> str:
        return "".join(self._text[int(token)] for token in tokens)


class TokenizerCodec:
    """A transformers tokenizer; `template` says how problems become prompts (delaysim.tasks.prompts.py).

    With `auto` a prompt without an instruction stands as it is where the tokenizer has no chat template.
    Raises UserError on `chat` without one.
    """

    def __init__(self, tokenizer: Any, stop_ids: Sequence[int], vocabulary: int, template: str = "auto") -> None:
        check_template(template)
        if template == "chat" and tokenizer.chat_template is None:
            raise UserError("model.template=chat: this tokenizer has no chat template; use model.template=qwen_math")
        self._tokenizer, self._template = tokenizer, template
        self.stop_ids = frozenset(stop_ids)
        self.vocabulary = vocabulary

    def encode_prompt(self, prompt: str, instruction: str = "", examples: Examples = ()) -> Ids:
        if self._template == "chat" or (self._template == "auto" and self._tokenizer.chat_template is not None):
            chat = messages(prompt, instruction, examples)
            ids = self._tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
            return np.array(ids, np.int32)
        template = ("qwen_math" if instruction else "{problem}") if self._template == "auto" else self._template
        return np.array(self._tokenizer(fill(template, prompt, instruction, examples))["input_ids"], np.int32)

    def decode(self, tokens: Sequence[int] | Ids) -> str:
        kept = [int(token) for token in tokens if int(token) not in self.stop_ids]
        return str(self._tokenizer.decode(kept, skip_special_tokens=False))
