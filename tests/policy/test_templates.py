"""Which template a tokenizer's prompts go through, and that tasks' problems arrive whole."""

import pytest

from delaysim.errors import UserError
from delaysim.policy.codec import TokenizerCodec, prompt_of
from delaysim.tasks import Problem
from delaysim.tasks.prompts import fill

PROBLEM = Problem("p", "3?", "3", "go", (("1?", "one"),))


class Letters:
    """A tokenizer of one token per character, with or without a chat template."""

    eos_token_id = 0

    def __init__(self, chat_template=None):
        self.chat_template = chat_template

    def __call__(self, text):
        return {"input_ids": [ord(letter) for letter in text]}

    def apply_chat_template(self, messages, add_generation_prompt, return_dict):
        return self("".join(f"[{m['role'][0]}]{m['content']}" for m in messages) + "[a]")["input_ids"]


def prompt(template, chat=False, problem=PROBLEM):
    codec = TokenizerCodec(Letters("{}" if chat else None), [0], 128, template)
    return "".join(map(chr, prompt_of(codec, problem).tolist()))


CHAT = "[u]1?\ngo[a]one[u]3?\ngo[a]"
QWEN = fill("qwen_math", "3?", "go", PROBLEM.examples)


@pytest.mark.parametrize(
    ("template", "chat", "text"),
    [
        ("auto", True, CHAT),
        ("auto", False, QWEN),
        ("chat", True, CHAT),
        ("qwen_math", True, QWEN),
        ("qwen_math", False, QWEN),
        ("plain", True, "1?\ngo\none\n3?\ngo\n"),
        ("{problem} ({instruction})=", True, "1? (go)=one\n3? (go)="),
    ],
)
def test_templates(template, chat, text):
    assert prompt(template, chat) == text


def test_without_an_instruction_a_base_model_reads_the_problem_alone():
    assert prompt("auto", problem=Problem("p", "4+8=", "2")) == "4+8="


def test_chat_needs_a_chat_template():
    with pytest.raises(UserError, match=r"has no chat template; use model\.template=qwen_math"):
        prompt("chat")
