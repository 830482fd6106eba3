"""Pictures as numbers: where the lines and bars of a small drawing stand. Templates draw them as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: Bars beyond this many a side could not be told apart.
BARS_A_SIDE = 150


class IntervalPicture(NamedTuple):
    """An interval on a line from -reach to +reach; all positions from 0 to `width`."""

    width: int
    zero: float
    low: float
    high: float
    mean: float
    ticks: tuple[tuple[float, str], ...]


def interval_picture(
    low: float, high: float, mean: float, width: int = 600, reach: float | None = None
) -> IntervalPicture:
    """Return the positions of an interval, zero always in the middle.

    The `reach` is a round number that holds the interval, unless it is given so that several share one scale.
    """
    reach = reach or common_reach([(low, high)])

    def at(value: float) -> float:
        return round(width / 2 * (1 + value / reach), 1)

    ticks = tuple((at(part * reach), _signed(part * reach)) for part in (-1, -0.5, 0, 0.5, 1))
    return IntervalPicture(width, at(0), at(low), at(high), at(mean), ticks)


def common_reach(intervals: Sequence[Sequence[float]]) -> float:
    """Return a round number that is as far from zero as the farthest end of all the intervals."""
    return _round_up(max((abs(end) for interval in intervals for end in interval), default=0.01))


def _round_up(value: float) -> float:
    """Return the next of 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1 … at or above the value."""
    step = 0.01
    while True:
        for factor in (1, 2, 5):
            if step * factor >= value:
                return step * factor
        step *= 10


def _signed(value: float) -> str:
    text = f"{value:+.3f}".rstrip("0").rstrip(".")
    return "0" if text in ("+0", "-0") else text.replace("-", "−")


class Bar(NamedTuple):
    """One bar: where it stands, and what it says."""

    x: float
    y: float
    width: float
    height: float
    label: str
    worse: bool


class BarsPicture(NamedTuple):
    """Differences by question as bars, the best at the left, the worst at the right; `zero` is the line between."""

    width: int
    height: int
    zero: float
    reach: float
    bars: tuple[Bar, ...]
    left_out: int


def bars_picture(changes: Sequence[tuple[str, float]], width: int = 900, height: int = 220) -> BarsPicture:
    """Return a bar for each (question, difference), largest gain first; unchanged questions have none.

    Where there are too many, the largest gains and losses are kept and `left_out` says how many are not
    shown.
    """
    moved = sorted(((name, d) for name, d in changes if d), key=lambda change: -change[1])
    gains = [change for change in moved if change[1] > 0]
    losses = [change for change in moved if change[1] < 0]
    shown = gains[:BARS_A_SIDE] + losses[-BARS_A_SIDE:]
    reach = _round_up(max((abs(d) for _, d in shown), default=0.01))
    slot = width / max(len(shown), 12)
    zero = height / 2
    bars = []
    for place, (name, difference) in enumerate(shown):
        size = abs(difference) / reach * (zero - 8)
        bars.append(
            Bar(
                x=round(place * slot + slot * 0.1, 2),
                y=round(zero - size if difference > 0 else zero, 2),
                width=round(slot * 0.8, 2),
                height=round(max(size, 0.5), 2),
                label=f"{name}: {difference:+.4f}",
                worse=difference < 0,
            )
        )
    return BarsPicture(width, height, zero, reach, tuple(bars), len(moved) - len(shown))
