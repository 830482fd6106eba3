"""Readers for everything that comes from outside. Pure: no Django, no database.

Each reader takes a path and answers with records and `findings` (faults and warnings); it never raises on content.
`FORMATS` names what each kind of import takes.
"""

from .catalogue import FORMATS, Format, Kind, format_names
from .chunks import ChunkFile, ChunkRecord
from .cut_passages import CutPassage
from .faults import MEANINGS, Example, Faults, Findings
from .known_answers import read_known_answers
from .opening import Limits, Progress, Source, Unreadable
from .qrels import MARK_OF_MODEL, LabelRecord, Negative, QrelsFile, read_qrels
from .questions import Fact, QuestionFile, QuestionRecord, read_questions
from .run_json import Passage
from .runs import Duplicates, Order, RankingRecord, RunFile, read_run
from .sniffing import Sniff, sniff
from .spreadsheets import as_it_was, defused
from .verdicts import REMAINDER_KEYS, VerdictFile, VerdictRecord, read_verdicts

__all__ = [
    "FORMATS",
    "MARK_OF_MODEL",
    "MEANINGS",
    "REMAINDER_KEYS",
    "ChunkFile",
    "ChunkRecord",
    "CutPassage",
    "Duplicates",
    "Example",
    "Fact",
    "Faults",
    "Findings",
    "Format",
    "Kind",
    "LabelRecord",
    "Limits",
    "Negative",
    "Order",
    "Passage",
    "Progress",
    "QrelsFile",
    "QuestionFile",
    "QuestionRecord",
    "RankingRecord",
    "RunFile",
    "Sniff",
    "Source",
    "Unreadable",
    "VerdictFile",
    "VerdictRecord",
    "as_it_was",
    "defused",
    "format_names",
    "read_known_answers",
    "read_qrels",
    "read_questions",
    "read_run",
    "read_verdicts",
    "sniff",
]
