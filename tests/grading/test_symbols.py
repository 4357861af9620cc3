"""Expressions: symbols, roots, powers, matrices, complex numbers."""

import pytest

RIGHT = [
    (r"\sqrt{1/n}", r"\frac{1}{\sqrt n}"),
    (r"\frac1{2^{99}}", "2^{-99}"),
    (r"1,2,\ldots,n", r"1,2,\dots,n"),
    (r"\frac{1}{m}t", r"\frac{t}{m}"),
    (r"\frac14A_1+\frac34A_2", r"\frac{A_1+3A_2}{4}"),
    (r"\frac{1}{\sqrt2}c", r"\frac{c}{\sqrt2}"),
    (r"\frac{1}{\sqrt2}c", r"\frac{\sqrt2}{2}c"),
    (r"\sin^2t", r"1-\cos^2t"),
    ("a+b+c", "c+b+a"),
    ("E_{1}", "E_1"),
    ("np.arcsin(5/7)", r"\arcsin(5/7)"),
    ("np.arcsin(5/7)", r"\sin^{-1}\frac{5}{7}"),
    ("-1./3", r"-\frac13"),
    ("6-5i", "-5i+6"),
    (r"e^{i\pi}", "-1"),
    (r"\infty", r"\infty"),
    ("9" * 5000, "9" * 5000),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{bmatrix}1\\2\end{bmatrix}"),
    (r"\begin{pmatrix}1/2\\2\end{pmatrix}", r"\begin{pmatrix}0.5\\2\end{pmatrix}"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2)"),
    (r"\frac{\sqrt3}{3}", r"\frac{1}{\sqrt3}"),
    (r"C_{300}^{30}\cdot C_{150}^{15}", r"\binom{300}{30}\binom{150}{15}"),
    (r"\overrightarrow{a}", r"\vec{a}"),
    ("x-4", "x−4"),
    ("π", r"\pi"),
    (r"\frac{14}{3}", r"\dfrac{14}{3}"),
    ("3,5,7", "3 , 5 , 7"),
    (r"\$47,\!219", "47219"),
    ("63,400", "63400"),
    (r"22,\! 222,\! 222,\! 200", "22222222200"),
    ("12", r"\textbf{(C)}\ 12"),
    (r"m n-\lfloor m/2\rfloor", r"mn-\left\lfloor\frac{m}{2}\right\rfloor"),
    ("5", "{5}"),
    ("5", "**5**"),
    ("120", "5!"),
]
WRONG = [
    ("4", r"4\sqrt{2}"),
    ("4", r"4\sqrt(2)"),
    (r"\frac{1}{2004!}", r"\frac{1}{2006!}"),
    (r"\frac1{2^{99}}", "2^{98}"),
    (r"1-\frac{1}{\mathrm{e}}", r"1+\frac{1}{\mathrm{e}}"),
    (r"1,2,\ldots,n", r"1,3,5,\ldots,2n-1"),
    ("I(0)", "0"),
    (r"\frac{1}{m}t", r"\frac{1}{m}"),
    (r"\frac14A_1+\frac34A_2", r"\frac34"),
    (r"\frac{1}{\sqrt2}c", r"\frac{1}{\sqrt2}"),
    (r"\sin^2 t", r"\sin^2"),
    ("a+b+c", "a+b"),
    ("E_1", "E_2"),
    (r"\frac{12}{3}", r"\frac{1}{23}"),
    ("(a+b)c", "a+bc"),
    ("6-5i", "6+5i"),
    ("6-5i", "(6,-5)"),
    ("i", "1"),
    (r"\infty", r"-\infty"),
    (r"\infty", "1/0"),
    ("5", "5^{5^{5^{5^5}}}"),
    ("1", "9" * 5000),
    ("1", "(" * 300 + "1" + ")" * 300),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\1\end{pmatrix}"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", "1,2"),
    ("5R^2", "5r^2"),
    ("x", "X"),
    (r"\alpha", r"\beta"),
    ("0.333", "1/3"),
    ("1/3", "0.3333"),
    ("7", "7.0005"),
    (r"C_{300}^{30}\cdot C_{150}^{15}", r"\binom{300}{15}\binom{150}{30}"),
    ("2^{1009}", "2^{1009}+1"),
    ("10", "1010_{2}"),
    (r"\frac{14}{3}", "4.667"),
    ("1,1", "1"),
    ("1", "1e-300"),
    ("5", "5!"),
]


@pytest.mark.parametrize(("gold", "answer"), RIGHT)
def test_right_answers_are_accepted(accepts, gold, answer):
    assert accepts(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), WRONG)
def test_wrong_answers_are_refused(accepts, gold, answer):
    assert not accepts(gold, answer)
