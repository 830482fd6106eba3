"""Label Studio doing the desk's work: GET the next task, POST an annotation, by as many people."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import connection

from benchmarks.crowd import Http, Outcome, run_crowd, running
from config.embedded.home import free_port
from config.supervise import web_arguments

DATABASE = "label_studio_benchmark"
TASKS = 5000
GRADES = ["Irrelevant", "Background", "Substantial", "Direct"]
CHOICES = "".join(f'<Choice value="{name}"/>' for name in GRADES)
CONFIGURATION = f"""
<View>
  <Text name="question" value="$question"/>
  <Text name="chunk" value="$chunk"/>
  <Choices name="grade" toName="chunk" choice="single">{CHOICES}</Choices>
</View>
"""
# One organization, its people, and their tokens.
PEOPLE = """
import json
from organizations.models import Organization
from rest_framework.authtoken.models import Token
from users.models import User
names = [f"person{number}" for number in range(%d)]
people = [User.objects.create_user(email=f"{name}@example.org", username=name, password=None) for name in names]
organization = Organization.create_organization(created_by=people[0], title="Benchmark")
for person in people:
    if person is not people[0]:
        organization.add_user(person)
    person.active_organization = organization
    person.save()
organization.jwt.legacy_api_tokens_enabled = True
organization.jwt.save()
print("TOKENS", json.dumps([Token.objects.get_or_create(user=person)[0].key for person in people]))
"""


def label_studio(venv: Path, folder: Path, *, people: int, seconds: float, text: str) -> float:
    """Annotations a second of the Label Studio in `venv`, with as many processes and threads as ours has."""
    package = next((venv / "lib").glob("python3*/site-packages/label_studio"), None)
    if package is None or not (venv / "bin" / "gunicorn").exists():
        raise SystemExit(f"{venv} has no label-studio and gunicorn in it.")
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE}")
    try:
        return _measured(venv, package, folder, people=people, seconds=seconds, text=text)
    finally:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def _measured(venv: Path, package: Path, folder: Path, *, people: int, seconds: float, text: str) -> float:
    database = connection.settings_dict
    python = str((venv / "bin" / "python").absolute())
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DJANGO_")},
        "DJANGO_SETTINGS_MODULE": "core.settings.label_studio",
        "DJANGO_DB": "default",
        "POSTGRE_NAME": DATABASE,
        "POSTGRE_USER": database["USER"],
        "POSTGRE_PASSWORD": database["PASSWORD"] or "",
        "POSTGRE_HOST": database["HOST"],
        "POSTGRE_PORT": str(database["PORT"]),
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "LOG_LEVEL": "ERROR",
        # Nothing is to be told to anybody, nor asked of anybody.
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
    }

    def manage(*arguments: str) -> str:
        command = [python, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=package, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"Label Studio's {arguments[0]} failed:\n{done.stderr[-3000:]}")
        return done.stdout

    manage("migrate", "--verbosity", "0")
    said = manage("shell", "-c", PEOPLE % people)
    tokens = json.loads(said[said.index("TOKENS") + len("TOKENS") :])
    port = free_port(18500)
    arguments = ["core.wsgi" if word == "config.wsgi" else word for word in web_arguments("127.0.0.1", port)]
    log, ready = folder / "label-studio.log", f"http://127.0.0.1:{port}/health"
    with running([python, "-m", *arguments], environment, log, ready, cwd=package):
        annotators = [Annotator(f"127.0.0.1:{port}", token) for token in tokens]
        project = annotators[0].make_project(text)
        for annotator in annotators:
            annotator.project = project
        outcome = run_crowd(annotators, pause=0.0, most=seconds)
    return outcome.confirmed / outcome.seconds


class Annotator:
    project: int
    task: dict[str, Any]

    def __init__(self, address: str, token: str):
        self.http = Http(address, {"Authorization": f"Token {token}", "Content-Type": "application/json"})
        self.draw = random.Random(token)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self.http.ask(method, path, json.dumps(body) if body is not None else None))

    def make_project(self, text: str) -> int:
        about = {"title": "Benchmark", "label_config": CONFIGURATION, "maximum_annotations": 1}
        project: int = self.ask("POST", "/api/projects/", about)["id"]
        tasks = [{"data": {"question": f"Question {n // 40}?", "chunk": f"{n} {text}"}} for n in range(TASKS)]
        self.ask("POST", f"/api/projects/{project}/import", tasks)
        return project

    def start(self) -> None:
        self.task = self.ask("GET", f"/api/projects/{self.project}/next/")

    def work(self, outcome: Outcome, on: Callable[[], bool], rest: Callable[[], None]) -> None:
        while on():
            choice = {"choices": [self.draw.choice(GRADES)]}
            result = [{"from_name": "grade", "to_name": "chunk", "type": "choices", "value": choice}]
            outcome.sent += 1
            self.ask(
                "POST", f"/api/tasks/{self.task['id']}/annotations/", {"result": result, "lead_time": 1.0}
            )
            outcome.confirmed += 1
            self.start()
            rest()
