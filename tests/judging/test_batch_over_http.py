"""A whole batch through HTTP: fifty assessors at once against real gunicorn and Postgres."""

from __future__ import annotations

import http.client
import json
import random
import threading
import urllib.parse
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from django.urls import reverse

from evalsets.models import Member, User
from judging.batch_reads import batch_figures
from judging.models import Batch, Judgment
from judging.services.gold import Gold
from labels.settling import settled_pairs
from tests.conftest import make_chunks, make_user
from tests.judging.batches import batch_of, current_judgments, places_by_pair

pytestmark = pytest.mark.django_db(transaction=True)

CSRF = "c" * 32


class Browser:
    """Keeps a connection, a session and a CSRF cookie, and posts forms for JSON."""

    def __init__(self, url: str, user: User):
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        session = client.cookies[django_settings.SESSION_COOKIE_NAME].value
        self.user = user
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
        self.headers = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
            "Cookie": f"{django_settings.SESSION_COOKIE_NAME}={session}; {django_settings.CSRF_COOKIE_NAME}={CSRF}",
            "X-CSRFToken": CSRF,
        }

    def post(self, path: str, **fields) -> dict:
        self.connection.request("POST", path, urllib.parse.urlencode(fields), self.headers)
        response = self.connection.getresponse()
        body = response.read()
        assert response.status == 200, body[:500]
        return json.loads(body)


@pytest.mark.parametrize("sharing", [Batch.Sharing.BY_QUESTION, Batch.Sharing.SHARED])
def test_each_pair_is_judged_exactly_as_often_as_asked(web, evalset, carol, tmp_path, sharing):
    crowd = [make_user(f"assessor{number:02}") for number in range(50)]
    Member.objects.bulk_create(Member(evalset=evalset, user=user, role="assessor") for user in crowd)
    questions = {f"q{q:02}": [f"c{c}" for c in range(5)] for q in range(10)}
    [gold_chunk] = make_chunks(evalset, "gold")
    answers = tmp_path / "known.txt"
    answers.write_text("q03 gold 2\nq07 gold 0\n")
    batch = batch_of(
        evalset,
        questions,
        by=carol,
        assessors=crowd,
        sharing=sharing,
        overlap=3,
        overlap_share=0.25,
        gold=Gold(share=0.6, file=answers),
        seed=1,
    )
    assert Counter(batch.pairs.values_list("gold_grade", "wanted")) == {
        (None, 1): 38,
        (None, 3): 12,
        (2, 50): 1,
        (0, 50): 1,
    }
    next_url = reverse("judging:desk-next", args=[evalset.slug, batch.pk])
    save_url = reverse("judging:desk-save", args=[evalset.slug, batch.pk])
    browsers = [Browser(web.url, user) for user in crowd]
    connection.close()
    together = threading.Barrier(len(browsers))

    def judge(browser: Browser) -> set[int]:
        mood, given = random.Random(browser.user.username), set()
        together.wait()
        answer = browser.post(next_url)
        while answer["next"]:
            pair = answer["next"][0]["pair"]
            assert pair not in given, "nobody gets a pair twice"
            given.add(pair)
            act = f"grade:{mood.randrange(4)}" if mood.random() > 0.05 else "skip:needs-expert"
            fields = {"pair": pair, "key": uuid.uuid4(), "as_user": browser.user.pk, "act": act}
            answer = browser.post(save_url, **fields)
            if mood.random() < 0.2:  # the answer was lost on the way; the browser sends it again
                answer = browser.post(save_url, **fields)
        return given

    with ThreadPoolExecutor(len(browsers)) as threads:
        for done in [threads.submit(judge, browser) for browser in browsers]:
            done.result()
    for browser in browsers:
        browser.connection.close()

    places = places_by_pair(batch)
    assert {pair.pk: places[pair.pk] for pair in batch.pairs.ordinary()} == dict(
        batch.pairs.ordinary().values_list("pk", "wanted")
    )
    said = current_judgments(batch)
    for pair in batch.pairs.gold():
        who = [judgment.assessor_id for judgment in said if judgment.pair_id == pair.pk]
        assert len(who) == len(set(who)) == 50, "each one met it once, and graded or skipped it"
    assert not any(judgment.details for judgment in said), "nothing was extra"
    assert Judgment.objects.filter(pair__batch=batch, replaces__isnull=False).count() == 0

    figures = batch_figures(batch)
    assert (figures.done, figures.wanted, figures.left) == (74, 74, 0)
    assert Batch.objects.in_state("done").get() == batch
    labels = settled_pairs(evalset)
    assert {pair.question_id: pair.label for pair in labels if pair.chunk_id == gold_chunk.pk} == {
        pair.question_id: pair.gold_grade for pair in batch.pairs.gold()
    }
