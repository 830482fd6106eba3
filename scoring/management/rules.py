"""The options that commands over a release share: which, by which measures and rules."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import add_by


def add_rules(parser: CommandParser, *, unit: bool = True) -> None:
    """Add which release, which measures, the rules by which they are computed, and whose act it is.

    The unit is left out where it is no choice.
    """
    parser.add_argument("--release", type=int, required=True, metavar="N", help="The release's number.")
    parser.add_argument(
        "--measure",
        dest="measures",
        nargs="+",
        action="extend",
        required=True,
        metavar="MEASURE",
        help="Measures as ir_measures writes them: Recall@5, RR@10, P@5, Success@1, AP@10, nDCG@10, Judged@10, "
        "Bpref, RBP(p=0.8), infAP.",
    )
    parser.add_argument(
        "--threshold", type=int, metavar="GRADE", help="Relevant from this grade; default: the release's."
    )
    parser.add_argument("--gain", choices=["exponential", "linear"], help="For nDCG; default: the release's.")
    if unit:
        parser.add_argument(
            "--unit", choices=["chunk", "document"], default="chunk", help="What is counted once."
        )
    parser.add_argument(
        "--split", choices=["dev", "holdout"], default="", help="Only questions of this split."
    )
    parser.add_argument(
        "--common",
        action="store_true",
        help="Where rankings are missing, score the questions that all the runs rank; the others are listed.",
    )
    add_by(parser)


def rules_of(options: dict[str, Any]) -> dict[str, Any]:
    """The shared options as keyword arguments of `resolve`."""
    names = ("measures", "threshold", "gain", "unit", "split", "common")
    return {name: options[name] for name in names if name in options}
