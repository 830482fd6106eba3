from __future__ import annotations

from argparse import BooleanOptionalAction
from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_by, add_yes, find_evalset, lead_of, read_scale
from evalsets.forms import EvalSetSettingsForm
from evalsets.models import EvalSet
from evalsets.services.evalsets import change_settings


class Command(FairpoolCommand):
    help = "Show the settings of an eval set, after changing those that are given."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name, which stays as it is.")
        parser.add_argument("--name", metavar="TEXT", help="Its name for people.")
        parser.add_argument("--description", metavar="TEXT")
        parser.add_argument(
            "--scale",
            metavar="FILE",
            help="A JSON list of the grades, as create_evalset takes it. A scale can be reworded and extended, never "
            "shortened.",
        )
        parser.add_argument("--threshold", type=int, metavar="GRADE", help="Relevant from this grade upward.")
        parser.add_argument("--gain", choices=EvalSet.Gain.values, help="Gain for nDCG.")
        parser.add_argument(
            "--settle-policy",
            choices=EvalSet.SettlePolicy.values,
            help="What the label of a pair is where its judgments differ.",
        )
        parser.add_argument(
            "--adjudication-tolerance",
            type=int,
            metavar="N",
            help="A lead decides where grades differ by more than N.",
        )
        parser.add_argument(
            "--low-unjudged-rate",
            type=float,
            metavar="X",
            help="Up to this rate, from 0 to 1, a score is read as it stands.",
        )
        parser.add_argument("--seconds-per-judgment", type=int, metavar="N", help="For estimates.")
        parser.add_argument(
            "--count-inadmissible",
            action=BooleanOptionalAction,
            help="Whether chunks from another scope or outside their period are scored by their label.",
        )
        add_by(parser)
        add_yes(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        grades = len(evalset.scale)
        given = {name: options[name] for name in EvalSetSettingsForm.Meta.fields if options[name] is not None}
        if "scale" in given:
            given["scale"] = read_scale(given["scale"])
        changed = [name for name, value in given.items() if value != getattr(evalset, name)]
        for name in changed:
            setattr(evalset, name, given[name])
        if changed:
            by = lead_of(evalset, options)
            if "scale" in changed and len(evalset.scale) > grades:
                self.confirm(
                    f"The scale grows from {grades} grades to {len(evalset.scale)}; it cannot be shortened again.",
                    yes=options["yes"],
                )
            change_settings(evalset=evalset, by=by, changed=changed)
        values = {name: getattr(evalset, name) for name in EvalSetSettingsForm.Meta.fields}
        return {"slug": evalset.slug, **values, "changed": changed}

    def show(self, document: dict[str, Any]) -> None:
        for name in EvalSetSettingsForm.Meta.fields:
            mark = "  (changed)" if name in document["changed"] else ""
            value = document[name]
            if name == "scale":
                value = "; ".join(f"{item['grade']} {item['name']}: {item['definition']}" for item in value)
            self.stdout.write(f"{name.replace('_', '-')}: {value}{mark}")
