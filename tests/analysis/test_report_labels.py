"""Labels beside lines, however long they are."""

import pytest

from delaysim.analysis.report.drawing import WIDTH, draw, label_lines, room


@pytest.mark.parametrize("length", [1, 26, 27, 64, 400])
def test_a_long_label_is_cut_and_leaves_the_axes_their_room(length):
    name = "x" * length

    def paint(ax):
        ax.plot([0, 1], [0, 1])
        label_lines(ax, [(name, 1.0, 1.0, "black")])
        return "a line"

    panel = draw(paint, right=room([name]))
    assert room([name]) < WIDTH - 46 - 80
    assert f">{name}<" in panel.svg if length <= 26 else f">{'x' * 25}…<" in panel.svg
