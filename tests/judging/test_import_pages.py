"""The import page: a file is checked, its report read, and then written; by the job that a worker runs."""

import gzip
import io
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from evalsets.models import Job
from judging.models import Judgment
from judging.tasks import import_upload
from pooling.models import Run
from tests.conftest import make_questions

# A job reports over a second connection, so its row must be committed.
pytestmark = pytest.mark.django_db(transaction=True)

IMPORT = "/e/handbook/import/"
RUN = "q1 Q0 c1 1 2.5 tag\nq1 Q0 c2 2 1.5 tag\n"


def send(client, kind: str, content: str | bytes, name: str = "file.txt", **options):
    """Send a file, let the worker check it, and open the report."""
    data = content.encode() if isinstance(content, str) else content
    response = client.post(f"{IMPORT}{kind}/", {"file": SimpleUploadedFile(name, data), **options})
    assert response.status_code == 302, response.context["form"].errors
    return report_of_latest_job(client)


def report_of_latest_job(client):
    job = Job.objects.latest("pk")
    import_upload(job.pk)
    job.refresh_from_db()
    return client.get(job.result_url)


def write(client, report):
    client.post(f"{IMPORT}reports/{report.context['job'].pk}/write/")
    return report_of_latest_job(client)


@pytest.fixture
def lead(carol, client_for):
    return client_for(carol)


def test_check_writes_nothing_and_write_writes_all(evalset, lead) -> None:
    make_questions(evalset, "q1")
    report = send(lead, "run", RUN, "bm25.trec", system="bm25", config='{"k1": 0.9}')
    assert report.context["report"]["new"] == 1
    assert not Run.objects.exists()
    written = write(lead, report)
    assert written.context["report"]["written"]
    run = Run.objects.get()
    assert (run.name, run.config, run.created_by.username) == ("bm25", {"k1": 0.9}, "carol")


def test_faults_are_shown_with_line_and_what_would_be_right(evalset, lead) -> None:
    make_questions(evalset, "q1")
    report = send(lead, "run", "q1 Q0 c1 1 2.5 tag\nq1 Q0 c2 2 1.5\n")
    html = report.content.decode()
    assert "so nothing of it is written" in html
    [fault] = report.context["report"]["faults"]
    assert fault["examples"][0]["line"] == 2


def test_a_fault_is_told_in_words_with_the_way_on(evalset, lead) -> None:
    html = send(lead, "run", RUN).content.decode()
    assert "<h2>The eval set has no questions yet." in html
    assert 'href="/e/handbook/import/?kind=questions">Import the questions first' in html
    html = send(lead, "questions", '{"_id": "c1", "title": "T", "text": "Text."}\n').content.decode()
    assert 'href="/e/handbook/import/?kind=chunks">Import the file as chunks' in html
    make_questions(evalset, "q1")
    html = send(lead, "run", RUN + "alone\n").content.decode()
    assert "<h2>A line has the wrong number of columns." in html
    assert "<td>1 column</td>" in html


def test_writing_a_file_with_faults_writes_nothing(evalset, lead) -> None:
    make_questions(evalset, "q1")
    report = send(lead, "run", "q1 Q0 c1 1 2.5 tag\nq1 Q0 c2 2 1.5\n")
    lead.post(f"{IMPORT}reports/{report.context['job'].pk}/write/")
    job = Job.objects.latest("pk")
    import_upload(job.pk)
    job.refresh_from_db()
    assert (job.state, Run.objects.count()) == (Job.State.FAILED, 0)


def test_recheck_with_other_options_uses_the_same_upload(evalset, lead) -> None:
    make_questions(evalset, "q1")
    report = send(lead, "run", RUN + "q9 Q0 c1 1 1.0 tag\n", system="bm25")
    assert report.context["report"]["faults"]
    job = report.context["job"]
    lead.post(f"{IMPORT}reports/{job.pk}/recheck/", {"system": "bm25", "unknown_questions": "skip"})
    again = report_of_latest_job(lead)
    assert again.context["report"]["faults"] == []
    assert Job.objects.latest("pk").upload == job.upload


def test_the_same_file_twice_says_that_nothing_was_new(evalset, lead) -> None:
    content = '{"id": "q1", "text": "What?"}\n'
    write(lead, send(lead, "questions", content))
    again = send(lead, "questions", content)
    assert "imported already" in again.content.decode()
    assert "Write" not in again.content.decode()
    assert "imported already" in write(lead, again).content.decode()
    assert evalset.questions.count() == 1


def test_a_compressed_file_is_told_by_its_content(evalset, lead) -> None:
    report = send(lead, "chunks", gzip.compress(b'{"id": "c1", "text": "Text."}\n'), "chunks.jsonl")
    assert report.context["report"]["new"] == 1


def test_what_was_skipped_in_an_archive_is_listed(evalset, lead) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("questions.tsv", "q1\tone\n")
        archive.writestr(".DS_Store", "\0")
    report = send(lead, "questions", content.getvalue(), "questions.zip")
    assert "Skipped in the archive" in report.content.decode()


def test_an_archive_that_is_refused_goes_by_no_name_of_ours(evalset, lead) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("../questions.tsv", "q1\tone\n")
    html = send(lead, "questions", content.getvalue(), "questions.zip").content.decode()
    assert "../questions.tsv" in html
    assert "upload-" not in html
    assert "None" not in html


def test_grade_zero_is_imported(evalset, lead) -> None:
    make_questions(evalset, "q1")
    write(lead, send(lead, "qrels", "q1 0 c1 0\n"))
    assert Judgment.objects.get().grade == 0


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("run", {"config": "{"}, "This is not JSON"),
        ("run", {"config": '{"k1": NaN}'}, "NaN is no JSON number"),
        ("run", {"config": "[" * 90_000}, "nested more than 50 deep"),
        ("run", {"config": "[1]"}, "Write a JSON object"),
        ("run", {"k": "0"}, "greater than or equal to 1"),
        ("verdicts", {}, "This field is required"),
    ],
)
def test_wrong_options_are_said_before_a_job_begins(kind, options, message, evalset, lead) -> None:
    response = lead.post(f"{IMPORT}{kind}/", {"file": SimpleUploadedFile("f", b"x"), **options})
    assert response.status_code == 422
    assert message in response.content.decode()
    assert not Job.objects.exists()


def test_a_path_in_the_file_name_is_only_a_label(evalset, lead, settings) -> None:
    send(lead, "questions", '{"id": "q1", "text": "What?"}\n', "../../etc/passwd")
    upload = Job.objects.latest("pk").upload
    assert upload.original_name == "passwd"
    assert str(upload.file.path).startswith(str(settings.MEDIA_ROOT))


def test_an_upload_above_the_limit_is_refused_before_it_is_read(evalset, lead, settings) -> None:
    settings.UPLOAD_LIMIT = 100
    response = lead.post(f"{IMPORT}run/", {"file": SimpleUploadedFile("f", b"x" * 500)})
    assert response.status_code == 413
    assert "the limit is" in response.content.decode()
    assert not Job.objects.exists()


def test_a_judges_grades_come_in_by_the_page(evalset, lead) -> None:
    make_questions(evalset, "q1")
    report = send(lead, "judge", "q1 0 c1 2\n", "gpt.txt", judge="gpt", repetition="2")
    assert not Judgment.objects.exists()
    assert report.context["form"]["repetition"].value() == 2
    assert write(lead, report).context["report"]["written"]
    judgment = Judgment.objects.get()
    assert (str(judgment.assessor), judgment.assessor.kind) == ("gpt", "model")
    assert judgment.details == {"line": 1, "repetition": 2}


def test_imported_files_are_searched_filtered_sorted_and_paged(evalset, lead) -> None:
    for name, kind in [("bm25.trec", "run"), ("dense.trec", "run"), ("labels.txt", "qrels")]:
        evalset.imported_files.create(name=name, kind=kind, sha256="0" * 64)

    def listed(**address):
        return [item.name for item in lead.get(IMPORT, {"kind": "qrels", **address}).context["page"]]

    assert listed() == ["labels.txt", "dense.trec", "bm25.trec"]
    assert listed(sort="file") == ["bm25.trec", "dense.trec", "labels.txt"]
    assert listed(q="TREC", sort="-file") == ["dense.trec", "bm25.trec"]
    assert listed(holds="qrels") == ["labels.txt"]
    html = lead.get(IMPORT, {"kind": "qrels", "q": "nothing"}).content.decode()
    assert f'No file is like that. <a href="{IMPORT}?kind=qrels">Show all</a>' in html
    assert '<input type="hidden" name="kind" value="qrels">' in html
    for n in range(20):
        evalset.imported_files.create(name=f"more-{n}", kind="run", sha256="0" * 64)
    refused = lead.post(f"{IMPORT}run/", {}).content.decode()
    assert f'<a class="btn btn-sm btn-outline-secondary" rel="next" href="{IMPORT}?page=2">' in refused
