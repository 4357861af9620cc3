"""Percent signs, units and degrees."""

import pytest

RIGHT = [
    (r"31\%", "31"),
    ("31", r"31\%"),
    (r"2.3\%", "2.3"),
    ("2.3", r"2.3\%"),
    (r"31\%", "31 percent"),
    (r"31\%", "0.31"),
    (r"37.5\%", r"\frac{3}{8}"),
    ("0.25", r"25\%"),
    ("20 cm", "20"),
    ("20 cm", r"20\text{ cm}"),
    (r"2\text{ m}", r"200\text{ cm}"),
    (r"5\text{ hours}", r"300\text{ minutes}"),
    (r"5\text{ hours}", "5"),
    ("6.3 cents", r"6.3\text{ cents}"),
    (r"90^\circ", "90"),
    (r"90^\circ", r"\frac{\pi}{2}"),
    (r"90^\circ", "90 degrees"),
    ("90", r"90^\circ"),
    (r"\frac{\pi}{3}", r"60^\circ"),
    (r"20\text{ cm}^2", r"20\text{ cm}^2"),
    (r"24\sqrt{5}cm^{3}", r"24\sqrt{5}"),
    (r"24\sqrt{5}cm^{3}", r"24\sqrt5\text{ cm}^3"),
    ("6m", "6 m"),
    ("5 million", "5000000"),
    ("60 mph", "60 miles per hour"),
    ("20", "20 m^2"),
    ("3 square feet", r"3\text{ ft}^2"),
    ("18", "18 apples"),
    (r"14\pi", r"14\pi\text{ cm}"),
    (r"14\pi\text{ cm}^2", r"14\pi"),
    (r"14\pi", r"14\pi\mathrm{m}^3"),
    (r"14\pi", r"14 \pi\ \text{square units}"),
    (r"14\pi\text{ m}", r"1400\pi\text{ cm}"),
    ("4.1e-17", r"4.1\times10^{-17}\,\text{C}"),
    ("31", r"31\text{ C}"),
    ("31", r"31^\circ\text{C}"),
]
WRONG = [
    ("0.5", "50"),
    ("50", "0.5"),
    ("2", "200"),
    (r"37.5\%", "37"),
    ("20 cm", "20 m"),
    ("2 m", r"200\text{ cm}"),
    (r"5\text{ hours}", r"5\text{ minutes}"),
    ("6.3 cents", r"\$6.30"),
    ("90", r"\frac{\pi}{2}"),
    (r"90^\circ", r"90\text{ radians}"),
    (r"\frac{\pi}{3}", "60"),
    (r"20\text{ cm}^2", r"20\text{ cm}"),
    (r"24\sqrt{5}cm^{3}", "24"),
    ("6m", "6"),
    ("6", "6m"),
    ("5", "5 million"),
    ("18", "18 and a half"),
    (r"14\pi", r"14\text{ cm}"),
    (r"14\pi\text{ m}", r"14\pi\text{ cm}"),
    (r"14\pi\text{ m}", r"14\pi\text{ m}^2"),
    (r"14\pi", r"14\pi\text{ times } 2"),
    ("7C", "7"),
    ("7", r"7_{\text{C}}"),
    ("18", "19 apples, not 18"),
]


@pytest.mark.parametrize(("gold", "answer"), RIGHT)
def test_right_answers_are_accepted(accepts, gold, answer):
    assert accepts(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), WRONG)
def test_wrong_answers_are_refused(accepts, gold, answer):
    assert not accepts(gold, answer)
