"""The names of measures, read as ir_measures writes them, and what each asks of a ranking."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import ir_measures

Gain = Literal["exponential", "linear"]
GAINS: tuple[Gain, ...] = ("exponential", "linear")

#: Grades above this make 2^grade - 1 a size that trec_eval would make a table of.
MAX_EXPONENTIAL_GRADE = 20

# What ir_measures calls a family -> our name; the cut-off it needs: "must", "may" or "never" be there.
_FAMILIES = {
    "R": ("Recall", "must"),
    "RR": ("RR", "may"),
    "P": ("P", "must"),
    "Success": ("Success", "must"),
    "AP": ("AP", "may"),
    "nDCG": ("nDCG", "may"),
    "Judged": ("Judged", "may"),
    "Bpref": ("Bpref", "never"),
    "RBP": ("RBP", "may"),
    "infAP": ("infAP", "never"),
}
# Not known to ir_measures: nDCG inferred from a sampled pool. Read as nDCG is, under its own name.
_INFERRED = "infNDCG"
_THRESHOLD_FREE = ("nDCG", _INFERRED, "Judged")
_KNOWN = (
    "Recall@k, RR@k, P@k, Success@k, AP@k, nDCG@k, Judged@k, Bpref, RBP(p=0.8), infAP, infNDCG@k "
    "and, without a cut-off, RR, AP, nDCG, Judged"
)


class MeasureError(ValueError):
    """A measure's name cannot be read; the message says what would be right."""


class Measure(NamedTuple):
    """One measure: family, cut-off (None: the whole ranking), persistence (RBP), own threshold, if any."""

    family: str
    k: int | None = None
    p: float | None = None
    rel: int | None = None

    @property
    def name(self) -> str:
        """Return the name that carries everything the number depends on, e.g. ``P(rel=2)@5``."""
        options = [f"p={self.p}"] if self.p is not None else []
        options += [f"rel={self.rel}"] if self.rel is not None else []
        inside = f"({','.join(options)})" if options else ""
        return f"{self.family}{inside}" + (f"@{self.k}" if self.k is not None else "")

    @property
    def depth(self) -> str:
        """Return the depth at which the measure's unjudged rate is told: its k, or ``all``."""
        return "all" if self.k is None else str(self.k)


def parse_measure(text: str) -> Measure:
    """Return the measure that ``text`` names. Raises MeasureError."""
    written = text.strip()
    inferred = written.startswith(_INFERRED)
    try:
        parsed = ir_measures.parse_measure(written.replace(_INFERRED, "nDCG", 1).replace("bpref", "Bpref", 1))
    except (NameError, ValueError, SyntaxError, TypeError) as error:
        raise MeasureError(f"“{text}” is not a measure. {_what_is_right(written)}") from error
    if parsed.NAME not in _FAMILIES:
        raise MeasureError(f"“{text}” is not one of the measures computed here: {_KNOWN}.")
    family, cutoff = (_INFERRED, "may") if inferred else _FAMILIES[parsed.NAME]
    return Measure(
        family=family,
        k=_cutoff(text, family, cutoff, parsed.params.get("cutoff")),
        p=_persistence(text, family, parsed.params.get("p")),
        rel=_own_threshold(text, family, parsed.params),
    )


def parse_measures(texts: Iterable[str]) -> tuple[Measure, ...]:
    """Return the measures in the order given, each once. Raises MeasureError, also where there is none."""
    measures = tuple(dict.fromkeys(parse_measure(text) for text in texts))
    if not measures:
        raise MeasureError(f"No measure was named. Name at least one of {_KNOWN}.")
    return measures


def _what_is_right(written: str) -> str:
    """Say what is wrong with a cut-off where that is the likely fault, else list what is known."""
    name, at, cutoff = written.partition("@")
    if at and not (cutoff.isascii() and cutoff.isdigit() and not cutoff.startswith("0")):
        return f"A cut-off is a whole number from 1 up, as in {name or 'Recall'}@5."
    return f"Known are {_KNOWN}."


def _cutoff(text: str, family: str, cutoff: str, k: object) -> int | None:
    if k is None:
        if cutoff == "must":
            raise MeasureError(f"“{text}” needs a cut-off, as in {family}@5.")
        return None
    if cutoff == "never":
        raise MeasureError(f"“{text}”: {family} looks at the whole ranking and takes no cut-off.")
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise MeasureError(f"“{text}”: the cut-off must be a whole number from 1 up, as in {family}@5.")
    return k


def _persistence(text: str, family: str, p: object) -> float | None:
    if family != "RBP":
        return None
    if p is None:
        return 0.8
    if not isinstance(p, (int, float)) or isinstance(p, bool) or not 0 < p < 1:
        raise MeasureError(f"“{text}”: the persistence p must be between 0 and 1, as in RBP(p=0.8).")
    return float(p)


def _own_threshold(text: str, family: str, params: dict[str, object]) -> int | None:
    others = sorted(
        set(params) - {"cutoff", "p", "rel"} | ({"p"} & set(params) if family != "RBP" else set())
    )
    if others:
        raise MeasureError(
            f"“{text}”: {', '.join(others)} cannot be set in a measure's name; "
            "gain and policy are options of their own."
        )
    rel = params.get("rel")
    if rel is None:
        return None
    if family in _THRESHOLD_FREE:
        raise MeasureError(f"“{text}”: {family} has no threshold.")
    if not isinstance(rel, int) or isinstance(rel, bool) or rel < 1:
        raise MeasureError(f"“{text}”: rel must be a grade from 1 up, as in {family}(rel=2).")
    return rel


def gain_of(grade: int, gain: Gain) -> int:
    """Return the gain of a grade: ``2^grade - 1`` (Burges et al., ICML 2005) or the grade itself."""
    return 2**grade - 1 if gain == "exponential" else grade
