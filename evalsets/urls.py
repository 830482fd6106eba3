from django.urls import path
from django.urls.resolvers import URLPattern

from evalsets.views import audit, jobs, members, settings, splits, tokens

app_name = "evalsets"

urlpatterns: list[URLPattern] = [
    path("settings/", settings.evalset_settings, name="settings"),
    path("questions/split/", splits.split_draw, name="split-draw"),
    path("members/", members.member_list, name="member-list"),
    path("members/add/", members.member_add, name="member-add"),
    path("members/<int:pk>/role/", members.member_role, name="member-role"),
    path("members/<int:pk>/remove/", members.member_remove, name="member-remove"),
    path("tokens/", tokens.token_list, name="token-list"),
    path("tokens/new/", tokens.token_new, name="token-new"),
    path("tokens/<int:pk>/revoke/", tokens.token_revoke, name="token-revoke"),
    path("jobs/", jobs.job_list, name="job-list"),
    path("jobs/<int:pk>/", jobs.job_detail, name="job"),
    path("jobs/<int:pk>/cancel/", jobs.job_cancel, name="job-cancel"),
    path("jobs/<int:pk>/retry/", jobs.job_retry, name="job-retry"),
    path("audit/", audit.audit, name="audit"),
]
