"""From problem to prompt: the Qwen math prompt letter by letter, chats, examples, a text of one's own."""

import pytest

from delaysim.errors import UserError
from delaysim.tasks.base import INSTRUCTION
from delaysim.tasks.prompts import check_template, fill, messages

QWEN = r"""<|im_start|>system
Please reason step by step, and put your final answer within \boxed{}.<|im_end|>
<|im_start|>user
What is $\{x\}$?<|im_end|>
<|im_start|>assistant
"""


def test_the_qwen_math_prompt():
    assert fill("qwen_math", r"What is $\{x\}$?", INSTRUCTION) == QWEN


def test_braces_of_a_problem_are_left_alone():
    assert fill("Q: {problem} {instruction} A:", "{instruction} {0} {x}", "go") == "Q: {instruction} {0} {x} go A:"


def test_examples_stand_before_in_the_same_form():
    shown = [("1?", "one"), ("2?", "two")]
    assert fill("Q: {problem}\nA: ", "3?", "", shown) == "Q: 1?\nA: one\nQ: 2?\nA: two\nQ: 3?\nA: "
    chatml = fill("qwen_math", "3?", "go", shown[:1])
    assert chatml == fill("qwen_math", "1?", "go") + "one<|im_end|>\n" + fill("qwen_math", "3?", "go")
    assert messages("3?", "go", shown[:1]) == [
        {"role": "user", "content": "1?\ngo"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "3?\ngo"},
    ]


def test_without_an_instruction_a_message_is_the_problem():
    assert messages("3?", "") == [{"role": "user", "content": "3?"}]


@pytest.mark.parametrize("template", ["auto", "chat", "qwen_math", "plain", "Q: {problem}"])
def test_templates_that_are(template):
    check_template(template)


def test_a_template_without_a_problem_is_refused():
    with pytest.raises(UserError, match=r"model\.template=qwen: choose one of auto, chat, qwen_math, plain, or a text"):
        check_template("qwen")
