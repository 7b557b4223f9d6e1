"""The chart of a soak."""

import re
from xml.etree import ElementTree as ET

from foretell.bench.rigs.soak.chart import HEIGHT_OF_CHART, PANELS, WIDTH, chart_of_soak
from foretell.bench.rigs.soak.samples import SERVER_LESS_KNOWN
from foretell.bench.rigs.soak.trends import GROWTH_BARS, LEVEL_BARS

SVG = "{http://www.w3.org/2000/svg}"
NAMES = [name for names in PANELS.values() for name in names]


def test_every_value_has_a_line_within_the_chart() -> None:
    samples = [
        {"at_s": 10.0 * number, **dict.fromkeys(NAMES, number * 3.0)} for number in range(1, 7)
    ]
    chart = ET.fromstring(chart_of_soak(samples))
    lines = chart.findall(f"{SVG}polyline")
    assert len(lines) == len(NAMES)
    for line in lines:
        points = [tuple(map(float, each.split(","))) for each in line.attrib["points"].split()]
        assert len(points) == len(samples)
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT_OF_CHART for x, y in points)
        assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)


def test_a_missing_sample_leaves_a_point_out() -> None:
    chart = chart_of_soak([{"at_s": 1.0, "files database MB": 1.0}, {"at_s": 2.0}])
    points = re.findall(r'points="([^"]*)"', chart)
    assert sorted(map(len, points))[:-1] == [0] * (len(NAMES) - 1)


def test_a_soak_without_samples_has_a_chart_without_points() -> None:
    assert ET.fromstring(chart_of_soak([])).tag == f"{SVG}svg"


def test_the_chart_has_every_value_that_is_judged_but_a_derived_one() -> None:
    """Open files were in no panel."""
    judged = {bar.name for bar in (*GROWTH_BARS, *LEVEL_BARS)}
    assert judged - set(NAMES) == {SERVER_LESS_KNOWN}
