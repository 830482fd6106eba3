from __future__ import annotations

from typing import Any

from evalsets.models import EvalSet, User
from evalsets.progress import Progress
from pooling.import_command import ImportCommand
from pooling.services.importing import ImportReport, import_questions


class Command(ImportCommand):
    kind = "questions"
    help = "Import questions. A known ID takes the file's fields; what the file does not say stays as it is."

    def bring_in(
        self, evalset: EvalSet, by: User | None, progress: Progress, options: dict[str, Any]
    ) -> ImportReport:
        return import_questions(evalset=evalset, by=by, progress=progress, **self.common(options))
