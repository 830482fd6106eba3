"""The picture of a simulation: relevant pairs found against judgments made, one line a strategy, as an SVG file.

It stands alone: no script, no font to load, readable in light and dark. Each line has a colour and a pattern of dashes
of its own, and the names at the side stand in the order of what was found in the first quarter of the judgments.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pooling.simulation import Curve, Simulation

WIDTH, HEIGHT = 900, 520
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 56, 60
# Okabe and Ito's colours, which people of any colour vision can tell apart; with a pattern, should they be too many.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a7a7a", "#8a5a00")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4")

STYLE = """
  svg { background: #fff; color: #1d2125; font: 13px system-ui, sans-serif }
  text { fill: currentColor } .quiet { opacity: .7 } .grid { stroke: currentColor; opacity: .15 }
  .axis { stroke: currentColor; opacity: .6 }
  @media (prefers-color-scheme: dark) { svg { background: #15181b; color: #e6e8ea } }
"""


def simulation_svg(simulation: Simulation) -> str:
    """The picture as a complete SVG document."""
    most = max((judgments for curve in simulation.curves for judgments, _ in curve.points), default=0) or 1
    relevant = simulation.relevant_in_union or 1

    def x(judgments: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * judgments / most, 1)

    def y(share: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title">',
        '<title id="title">Relevant pairs found against judgments made, by strategy</title>',
        f"<style>{STYLE}</style>",
        f'<text x="{LEFT}" y="24" font-size="16" font-weight="600">Relevant pairs found against judgments made</text>',
        f'<text x="{LEFT}" y="43" class="quiet">{simulation.union:,} pairs in the union, '
        f"{simulation.relevant_in_union:,} of them relevant</text>",
    ]
    for quarter in range(5):
        share = quarter / 4
        count = f"{most * share:,.0f}"
        parts += [
            f'<path class="grid" d="M{x(0)} {y(share)}H{x(most)}M{x(most * share)} {y(0)}V{y(1)}"/>',
            f'<text class="quiet" x="{LEFT - 8}" y="{y(share) + 4}" text-anchor="end">{share:.0%}</text>',
            f'<text class="quiet" x="{x(most * share)}" y="{y(0) + 20}" text-anchor="middle">{count}</text>',
        ]
    parts += [
        f'<path class="axis" fill="none" d="M{x(0)} {y(1)}V{y(0)}H{x(most)}"/>',
        f'<text x="{x(most / 2)}" y="{HEIGHT - 14}" text-anchor="middle">Judgments made</text>',
    ]
    for place, (number, curve) in enumerate(_by_height(simulation.curves, most)):
        look = f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-dasharray="{DASHES[number % len(DASHES)]}"'
        points = " ".join(f"{x(judgments)},{y(found / relevant)}" for judgments, found in curve.points)
        at = TOP + 22 * place + 10
        parts += [
            f'<polyline fill="none" stroke-width="2" {look} points="{points}"/>',
            f'<path stroke-width="3" {look} d="M{WIDTH - RIGHT + 24} {at}h34"/>',
            f'<text x="{WIDTH - RIGHT + 66}" y="{at + 4}">{escape(curve.name)}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _by_height(curves: Sequence[Curve], most: int) -> list[tuple[int, Curve]]:
    """The curves with their numbers, those that find most in the first quarter of the judgments first."""

    def found_by_then(curve: Curve) -> int:
        return max(found for judgments, found in curve.points if judgments <= most / 4)

    return sorted(enumerate(curves), key=lambda numbered: -found_by_then(numbered[1]))
