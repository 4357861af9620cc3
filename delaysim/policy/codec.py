"""Text to token ids and back, for the two kinds of model."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from delaysim.errors import UserError
from delaysim.policy.rollout import Ids
from delaysim.tasks.chain import CHARACTERS


class Codec(Protocol):
    """What sampler and tasks need of a tokenizer."""

    stop_ids: frozenset[int]
    """Tokens that end a response."""
    vocabulary: int

    def encode_prompt(self, prompt: str) -> Ids:
        """Token ids of a prompt, everything before the response included."""
        ...

    def decode(self, tokens: Sequence[int] | Ids) -> str:
        """Text of a response, without its stop token."""
        ...


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

    def encode_prompt(self, prompt: str) -> Ids:
        return np.array([self.BOS, *self.encode(prompt)], np.int32)

    def decode(self, tokens: Sequence[int] | Ids) -> str:
        return "".join(self._text[int(token)] for token in tokens)


class TokenizerCodec:
    """A transformers tokenizer; prompts go through its chat template where it has one."""

    def __init__(self, tokenizer: Any, stop_ids: Sequence[int], vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self.stop_ids = frozenset(stop_ids)
        self.vocabulary = vocabulary

    def encode_prompt(self, prompt: str) -> Ids:
        if self._tokenizer.chat_template is None:
            return np.array(self._tokenizer(prompt)["input_ids"], np.int32)
        message = [{"role": "user", "content": prompt}]
        ids = self._tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False)
        return np.array(ids, np.int32)

    def decode(self, tokens: Sequence[int] | Ids) -> str:
        kept = [int(token) for token in tokens if int(token) not in self.stop_ids]
        return str(self._tokenizer.decode(kept, skip_special_tokens=False))
