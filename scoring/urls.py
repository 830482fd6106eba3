from django.urls.resolvers import URLPattern

app_name = "scoring"

urlpatterns: list[URLPattern] = []
