"""Everything lies under scores/, so that one section of the navigation is lit for all of it."""

from django.urls import path
from django.urls.resolvers import URLPattern

from scoring.views import analyses, comparisons, effects, scores, sweeps

app_name = "scoring"

urlpatterns: list[URLPattern] = [
    path("scores/", scores.score_list, name="score-list"),
    path("scores/new/", scores.score_new, name="score-new"),
    path("scores/results/<int:pk>/", scores.score_detail, name="score"),
    path("scores/results/<int:pk>/questions.<str:form>", scores.score_download, name="score-download"),
    path("scores/comparisons/", comparisons.comparison_list, name="comparison-list"),
    path("scores/comparisons/new/", comparisons.comparison_new, name="comparison-new"),
    path("scores/comparisons/<int:pk>/", comparisons.comparison_detail, name="comparison"),
    path(
        "scores/comparisons/<int:pk>/questions/<int:question_pk>/",
        comparisons.comparison_question,
        name="comparison-question",
    ),
    path("scores/effects/<int:before>/<int:after>/", effects.release_effects, name="release-effects"),
    path("scores/sweep/", sweeps.sweep, name="sweep"),
    path("scores/sweep/new/", sweeps.sweep_new, name="sweep-new"),
    path("scores/unjudged/", analyses.unjudged, name="unjudged"),
    path("scores/reusability/", analyses.reusability, name="reusability"),
    path("scores/reusability/new/", analyses.reusability_new, name="reusability-new"),
    path("scores/definitions/", scores.definitions, name="definitions"),
    path("scores/stages/", analyses.stages, name="stages"),
    path("scores/stages/new/", analyses.stages_new, name="stages-new"),
]
