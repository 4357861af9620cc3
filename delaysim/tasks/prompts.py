"""From a problem and an instruction to the text a model reads."""

from collections.abc import Sequence

from delaysim.errors import UserError

Examples = Sequence[tuple[str, str]]
"""Problems and their responses."""

TEMPLATES = {
    "qwen_math": (
        "<|im_start|>system\n{instruction}<|im_end|>\n<|im_start|>user\n{problem}<|im_end|>\n<|im_start|>assistant\n"
    ),
    "plain": "{problem}\n{instruction}\n",
}
"""Texts for base models; `chat` is the tokenizer's own template, `auto` that where there is one, else qwen_math."""
END = {"qwen_math": "<|im_end|>\n"}
"""What closes the response of an example."""
CHOICES = ("auto", "chat", *TEMPLATES)


def check_template(template: str) -> None:
    """Raise UserError unless it is the name of a template or a text with {problem} in it."""
    if template not in CHOICES and "{problem}" not in template:
        raise UserError(
            f"model.template={template}: choose one of {', '.join(CHOICES)}, or a text with {{problem}} in it"
        )


def fill(template: str, problem: str, instruction: str, examples: Examples = ()) -> str:
    """A template's text, examples in the same form before it; braces of the problem stay as they are."""
    text = TEMPLATES.get(template, template)
    shown = [_filled(text, question, instruction) + answer + END.get(template, "\n") for question, answer in examples]
    return "".join(shown) + _filled(text, problem, instruction)


def messages(problem: str, instruction: str, examples: Examples = ()) -> list[dict[str, str]]:
    """What user and assistant say in a chat, up to the response."""
    said = []
    for question, answer in examples:
        said += [_message("user", _asked(question, instruction)), _message("assistant", answer)]
    return [*said, _message("user", _asked(problem, instruction))]


def _filled(text: str, problem: str, instruction: str) -> str:
    return text.replace("{instruction}", instruction).replace("{problem}", problem)


def _asked(problem: str, instruction: str) -> str:
    return f"{problem}\n{instruction}" if instruction else problem


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
