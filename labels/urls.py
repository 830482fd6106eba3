from django.urls import path
from django.urls.resolvers import URLPattern

app_name = "labels"

urlpatterns: list[URLPattern] = []
