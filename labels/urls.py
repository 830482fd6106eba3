from django.urls import path
from django.urls.resolvers import URLPattern

from labels.views import agreement, chunks, contested, duplicates, mappings, questions, releases, systems

app_name = "labels"

urlpatterns: list[URLPattern] = [
    path("questions/", questions.question_list, name="question-list"),
    path("questions/<int:pk>/", questions.question_detail, name="question"),
    path("chunks/", chunks.chunk_list, name="chunk-list"),
    path("chunks/<int:pk>/", chunks.chunk_detail, name="chunk"),
    path("systems/", systems.system_list, name="system-list"),
    path("systems/<int:pk>/", systems.system_detail, name="system"),
    path("systems/<int:pk>/family/", systems.system_family, name="system-family"),
    path("runs/<int:pk>/", systems.run_detail, name="run"),
    path("runs/<int:pk>/questions/<int:question_pk>/", systems.ranking_detail, name="ranking"),
    path("runs/<int:pk>/file/", releases.run_file, name="run-file"),
    path("agreement/", agreement.agreement, name="agreement"),
    path("agreement/pairs/", agreement.agreement_pairs, name="agreement-pairs"),
    path("contested/", contested.contested_list, name="contested"),
    path("contested/next/", contested.settle_next, name="settle-next"),
    path("contested/<int:question_pk>/<int:chunk_pk>/", contested.settle, name="settle"),
    path("duplicates/", duplicates.duplicate_list, name="duplicate-list"),
    path("duplicates/find/", duplicates.duplicate_find, name="duplicate-find"),
    path("duplicates/join-equal/", duplicates.duplicate_join_equal, name="duplicate-join-equal"),
    path("duplicates/<int:pk>/", duplicates.duplicate_detail, name="duplicate"),
    path("duplicates/<int:pk>/verdict/", duplicates.duplicate_verdict, name="duplicate-verdict"),
    path("verdicts/<int:pk>/take-back/", duplicates.verdict_take_back, name="verdict-take-back"),
    path("chunks/<int:pk>/verdict/", duplicates.chunk_verdict, name="chunk-verdict"),
    path("classes/<int:pk>/", duplicates.class_detail, name="class"),
    path("mappings/", mappings.mapping_list, name="mapping-list"),
    path("mappings/find/", mappings.mapping_find, name="mapping-find"),
    path("mappings/carry/", mappings.mapping_carry, name="mapping-carry"),
    path("mappings/<int:pk>/", mappings.mapping_detail, name="mapping"),
    path("mappings/<int:pk>/decide/", mappings.mapping_decide, name="mapping-decide"),
    path("releases/", releases.release_list, name="release-list"),
    path("releases/new/", releases.release_new, name="release-new"),
    path("releases/difference/", releases.release_difference, name="release-difference"),
    path("releases/<int:number>/", releases.release_detail, name="release"),
    path("releases/<int:number>/unlabelled/", releases.release_unlabelled, name="release-unlabelled"),
    path("releases/<int:number>/files/<slug:name>/", releases.release_file, name="release-file"),
]
