from django.urls import path
from django.urls.resolvers import URLPattern

from judging.views import desk

app_name = "judging"

urlpatterns: list[URLPattern] = [
    path("batches/<int:pk>/desk/", desk.desk, name="desk"),
    path("batches/<int:pk>/desk/next/", desk.desk_next, name="desk-next"),
    path("batches/<int:pk>/desk/save/", desk.desk_save, name="desk-save"),
    path("batches/<int:pk>/desk/stop/", desk.desk_stop, name="desk-stop"),
    path("batches/<int:pk>/desk/highlight/", desk.desk_highlight, name="desk-highlight"),
]
