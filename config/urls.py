"""Addresses. Everything of an eval set lies under e/<slug>/; each app brings its own part."""

from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path, re_path
from django.urls.resolvers import URLPattern, URLResolver
from django.views.decorators.csrf import csrf_exempt

from config import api, probes, views
from config.api_page import api_page
from evalsets.api.problems import not_found

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.my_work, name="my-work"),
    path("sign-in/", views.SignIn.as_view(), name="sign-in"),
    path("sign-out/", auth_views.LogoutView.as_view(), name="sign-out"),
    path("password/", views.PasswordChange.as_view(), name="password-change"),
    path("health/", probes.health, name="health"),
    path("health/ready/", probes.ready, name="health-ready"),
    path("metrics", probes.metrics_page, name="metrics"),
    path("evalsets/new/", views.evalset_new, name="evalset-new"),
    path("e/<slug:slug>/", views.evalset_home, name="evalset-home"),
    path("e/<slug:slug>/", include("evalsets.urls")),
    path("e/<slug:slug>/", include("judging.urls")),
    path("e/<slug:slug>/", include("labels.urls")),
    path("e/<slug:slug>/", include("scoring.urls")),
    path("api/v1/docs", api_page, name="api-docs"),
    path("api/v1/", api.urls),
    re_path(r"^api/", login_not_required(csrf_exempt(not_found)), name="api-nothing"),
]

handler400 = "config.views.bad_request"
handler403 = "config.views.forbidden"
handler404 = "config.views.not_found"
handler500 = "config.views.server_error"
