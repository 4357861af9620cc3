r"""One spelling for LaTeX that says the same: delimiters, spaces, fonts and synonyms. Pure text in, text out.

`plain` keeps everything that can change a value; `key` is for comparing two plain texts letter by letter.
"""

import re
from functools import lru_cache

LONGEST = 2000
"""A longer text is compared letter by letter only [characters]."""

_UNICODE = {
    "−–‐‑": "-", "×·⋅∙": r"\cdot ", "÷": "/", "⁄∕": "/", "≤⩽": r"\le ", "≥⩾": r"\ge ", "≠": r"\ne ",
    "≈": r"\approx ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∞": r"\infty ", "√": r"\sqrt ", "±": r"\pm ",
    "∓": r"\mp ", "°º": "°", "π": r"\pi ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ",
    "ε": r"\epsilon ", "θ": r"\theta ", "λ": r"\lambda ", "μµ": r"\mu ", "ρ": r"\rho ", "σ": r"\sigma ",
    "τ": r"\tau ", "φϕ": r"\phi ", "ω": r"\omega ", "Δ": r"\Delta ", "Ω": r"\Omega ", "∅": r"\emptyset ",
    "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "∠": r"\angle ", "…": r"\ldots ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}", "″": '"', "′’‘": "'", "“”": '"', "\u00a0\u2009\u202f\u2007": " ", "\u200b\ufeff": "",
    "⟨": r"\langle ", "⟩": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ",
}  # fmt: skip
UNICODE = str.maketrans({char: to for chars, to in _UNICODE.items() for char in chars})

END = r"(?![A-Za-z])"


def _joined(match: re.Match[str]) -> str:
    """Thousands that a space parts."""
    return match[1] + match[2].replace(" ", "{,}")


_SYNONYMS = (
    (r"\\(?:left|right|middle|[bB]igg?[lrm]?)" + END + r"\s*\.?", ""),
    (r"\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|mathstrut|rm|bf|it)" + END, ""),
    (r",\s*\\!\s*(?=[0-9]{3}(?![0-9]))", "{,}"),
    (r"(?<=[0-9])\\[,;:](?=[0-9]{3}(?![0-9]))", "{,}"),
    (r"\s*\{,\}\s*", "{,}"),
    (r"(?<![0-9.,/])([0-9]{1,3})((?: [0-9]{3})+)(?![0-9/.,]| [0-9])", _joined),
    (r"(?<!\\)\\!", ""),
    (r"(?<!\\)\\[,;:> ]|~|\\q?quad" + END + r"|\\(?:hspace|vspace|phantom|hphantom)\*?\{[^{}]*\}", " "),
    (r"\\[dtc]frac" + END, r"\\frac"),
    (r"\\[dt]binom" + END, r"\\binom"),
    (r"\^\s*\{?\s*\\circ\s*\}?|\\degree" + END + r"|\\textdegree" + END, "°"),
    (r"\^\s*(?:\{\s*\\prime\s*\\prime\s*\}|''|\\prime\s*\\prime)", "''"),
    (r"\^\s*(?:\{\s*\\prime\s*\}|\\prime)", "'"),
    (r"(?<=[A-Za-z0-9)}])\s*\*\*\s*(?=[-{(0-9A-Za-z\\])", "^"),
    (r"\\(?:times|cdot|ast)" + END, r"\\cdot "),
    (r"\\div" + END, "/"),
    (r"\\(?:leqslant|leq|le)" + END + "|<=|=<", r"\\le "),
    (r"\\(?:geqslant|geq|ge)" + END + "|>=", r"\\ge "),
    (r"\\(?:neq|ne)" + END + r"|!=|\\not\s*=", r"\\ne "),
    (r"\\lt" + END, "<"),
    (r"\\gt" + END, ">"),
    (r"\\(?:cong|approx|simeq)" + END, r"\\approx "),
    (r"\\lbrace" + END, r"\\{"),
    (r"\\rbrace" + END, r"\\}"),
    (r"\\lbrack" + END, "["),
    (r"\\rbrack" + END, "]"),
    (r"\\(?:lparen|langle)" + END, "("),
    (r"\\(?:rparen|rangle)" + END, ")"),
    (r"\\overrightarrow" + END, r"\\vec"),
    (r"\\bar" + END, r"\\overline"),
    (r"\\widehat" + END, r"\\hat"),
    (r"\\(?:lvert|rvert|vert)" + END, "|"),
    (r"\\(?:varnothing)" + END, r"\\emptyset "),
    (r"\\(?:dots|cdots|dotsc|dotsb)" + END + r"|\.\.\.", r"\\ldots "),
    (r"\\(?:setminus|backslash)" + END, r"\\setminus "),
    (r"\\(?:text|mathrm|mathbf|operatorname|mathit|mathsf|boldsymbol|pmb|bm|textbf|textrm|textit|textsf|texttt"
     r"|textnormal|mbox|hbox|emph|underline)\*?\s*(?=\{)", r"\\text"),
)  # fmt: skip
SYNONYMS = [(re.compile(pattern), to) for pattern, to in _SYNONYMS]

_FUNCTIONS = "arcsin arccos arctan sinh cosh tanh sin cos tan cot sec csc log ln lg exp max min gcd lcm"
FUNCTIONS = tuple(_FUNCTIONS.split())
_GREEK = """alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho
sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"""
GREEK = tuple(_GREEK.split())
_ROMAN = "|".join(FUNCTIONS)
TEXT = re.compile(r"\\text\{\s*([^{}]*?)\s*\}")
BARE_WORD = re.compile(r"(?<![\\A-Za-z])(?:(?:np|numpy|math|sympy)\.)?(asin|acos|atan|sqrt|pi|infinity|infty|inf|"
                       + _ROMAN + "|theta|alpha|beta|omega|lambda)(?![A-Za-z])")  # fmt: skip
BARE = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "inf": "infty", "infinity": "infty"}
ROOT = re.compile(r"\\sqrt\s*(\[[^\[\]]*\])?\s*([0-9A-Za-z])")
MONEY = re.compile(r"\$(?=\s*-?[0-9.])")
PAIRED = re.compile(r"\\\(|\\\)|(?<!\\)\\\[|(?<!\\)\\\]")
SUPERSCRIPTS, SUBSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "₀₁₂₃₄₅₆₇₈₉"
DIGITS = str.maketrans(SUPERSCRIPTS + SUBSCRIPTS, "0123456789-+n0123456789")
RAISED = re.compile(f"[{SUPERSCRIPTS}]+|[{SUBSCRIPTS}]+")
REPEATING = re.compile(r"(?<![0-9.])([0-9]{0,40})\.([0-9]{0,40})\s*\\overline\s*\{\s*([0-9]{1,40})\s*\}")

DOTTED = re.compile(
    r"(?<=[0-9.])\s*\\dot\s*(?:\{\s*([0-9])\s*\}|([0-9]))(?:([0-9]{0,40})\s*\\dot\s*(?:\{\s*([0-9])\s*\}|([0-9])))?"
)


def _raised(match: re.Match[str]) -> str:
    return ("^{" if match[0][0] in SUPERSCRIPTS else "_{") + match[0].translate(DIGITS) + "}"


def _overlined(match: re.Match[str]) -> str:
    r"""Dots over the first and the last repeated digit, `0.1\dot{2}\dot{3}`, as a line over all of them."""
    return rf"\overline{{{''.join(filter(None, match.groups()))}}}"


def _repeating(match: re.Match[str]) -> str:
    """A repeating decimal as a fraction."""
    whole, fixed, repeated = match.groups()
    nines = 10 ** len(fixed) * (10 ** len(repeated) - 1)
    top = int(f"{whole}{fixed}{repeated}") - int(f"0{whole}{fixed}")
    return f"\\frac{{{top}}}{{{nines}}}"


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """The text in one spelling, without math delimiters and Markdown marks around it."""
    if len(text) > LONGEST:
        return text.strip()
    text = PAIRED.sub(" ", RAISED.sub(_raised, text.translate(UNICODE)).strip('*_`" \t\r\n'))
    text = _dollars(text.strip())
    for pattern, to in SYNONYMS:
        text = pattern.sub(to, text)
    text = REPEATING.sub(_repeating, DOTTED.sub(_overlined, text))
    text = BARE_WORD.sub(_command, _texts(text))
    text = ROOT.sub(r"\\sqrt\1{\2}", _fractions(_called_root(text)))
    text = re.sub(r"\*", r"\\cdot ", text)
    return _trimmed(re.sub(r"\s+", " ", text))


def _dollars(text: str) -> str:
    r"""Without the dollar signs that delimit math; `\$` stays money, and so does an odd one before a number."""
    text = text.replace(r"\$", "\0").replace("$$", "$")
    if text.count("$") % 2:
        text = MONEY.sub("\0", text, count=1)
    return text.replace("$", " ").replace("\0", r"\$").strip()


UNIT_LETTERS = frozenset("mgshLlNVAJWKC")
AFTER_NUMBER = re.compile(r"(?:[0-9}.)]|\\pi)\s*$")


def _texts(text: str) -> str:
    r"""`\text{x}` around one symbol, a number or a function's name is a matter of font."""

    def unwrapped(match: re.Match[str]) -> str:
        inner = match[1]
        if inner in FUNCTIONS:
            return f"\\{inner} "
        if inner in UNIT_LETTERS and AFTER_NUMBER.search(match.string[: match.start()]):
            return match[0]
        font_only = len(inner) <= 1 or not any(char.isalpha() for char in inner)
        return inner if font_only and inner not in "(" else f"\\text{{{inner}}}"

    return TEXT.sub(unwrapped, text)


def _command(match: re.Match[str]) -> str:
    name = BARE.get(match[1], match[1])
    return f"\\{name} "


def _called_root(text: str) -> str:
    r"""`\sqrt(2)` as people type it: the root of what stands in the parentheses."""
    start = 0
    while match := re.compile(r"\\sqrt\s*\(").search(text, start):
        end = closing(text, match.end() - 1)
        if end is None:
            return text
        text = f"{text[: match.start()]}\\sqrt{{{text[match.end() : end]}}}{text[end + 1 :]}"
        start = match.start() + 5
    return text


def _fractions(text: str) -> str:
    r"""Braces around both parts of every `\frac`, as in `\frac12` and `\frac{\sqrt3}2`."""
    place = text.find(r"\frac")
    while place >= 0:
        start = end = place + len(r"\frac")
        for _ in range(2):
            text, end = _braced(text, end)
        place = text.find(r"\frac", start)
    return text


def _braced(text: str, start: int) -> tuple[str, int]:
    """The text with braces around the symbol or group at `start`, and where that ends."""
    begin = start + len(text[start:]) - len(text[start:].lstrip())
    if text.startswith("{", begin):
        end = closing(text, begin)
        return text[:start] + text[begin:], start + 1 + (len(text) if end is None else end) - begin
    token = re.compile(r"[0-9A-Za-z]|\\[A-Za-z]+").match(text, begin)
    if token is None:
        return text, start
    return f"{text[:start]}{{{token[0]}}}{text[token.end() :]}", start + len(token[0]) + 2


def _trimmed(text: str) -> str:
    """Without spaces, full stops and commas at its end, and without braces around the whole of it."""
    while True:
        before = text
        text = text.strip().strip("`").rstrip(",;:").strip()
        text = re.sub(r"(?<![.])\.$", "", re.sub(r"\*+$", "", text)).strip()
        if text.startswith("{") and closing(text, 0) == len(text) - 1:
            text = text[1:-1]
        if text == before:
            return text


def key(text: str) -> str:
    """A plain text as letters to compare: no spaces, no braces around single symbols, fonts aside."""
    text = re.sub(r"\{,\}(?=[0-9]{3})", "", text)
    text = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"(?<=[_^])\s*\{\s*([A-Za-z0-9])\s*\}", r"\1", text)
    return re.sub(r"(?<![0-9])\s+|\s+(?![0-9])", "", text)


TOKEN = re.compile(r"\\[A-Za-z]+|\\.|.", re.DOTALL)
OPENING, CLOSING = {"(", "[", "{", r"\{", r"\lfloor", r"\lceil"}, {")", "]", "}", r"\}", r"\rfloor", r"\rceil"}


def closing(text: str, start: int) -> int | None:
    """Where the bracket that opens at `start` closes, any closing bracket counting; None where it does not."""
    depth = 0
    for token in TOKEN.finditer(text, start):
        depth += (token[0] in OPENING) - (token[0] in CLOSING)
        if depth == 0:
            return token.end() - 1
    return None


def split(text: str, at: re.Pattern[str]) -> list[str]:
    """The parts of a text between the matches of `at` that stand in no brackets."""
    return split_at(text, at)[0]


def split_at(text: str, at: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """The parts between the matches of `at` that stand in no brackets, and the matches."""
    parts, found, depth, start, place = [], [], 0, 0, 0
    while place < len(text):
        match = at.match(text, place) if depth == 0 else None
        if match and match.end() > place:
            parts.append(text[start:place].strip())
            found.append(match[0].strip())
            start = place = match.end()
            continue
        token = TOKEN.match(text, place)
        assert token is not None
        depth += (token[0] in OPENING) - (token[0] in CLOSING)
        place = token.end()
    return [*parts, text[start:].strip()], found
