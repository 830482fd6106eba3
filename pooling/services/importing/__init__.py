"""Bringing questions, chunks and runs in: one service for the page, the command and the API.

All or nothing: a file with a fault changes nothing. Each service takes `check=True` to report without writing.
"""

from .chunks import import_chunks
from .questions import import_questions
from .report import ImportReport, report_text
from .runs import import_run

__all__ = ["ImportReport", "import_chunks", "import_questions", "import_run", "report_text"]
