from django.urls import path
from django.urls.resolvers import URLPattern

from labels.views import chunks, questions, systems

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
]
