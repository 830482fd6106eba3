from django.urls import path
from django.urls.resolvers import URLPattern

from judging.views import batches, desk, imports, pools, verdicts

app_name = "judging"

urlpatterns: list[URLPattern] = [
    path("import/", imports.import_page, name="import"),
    path("import/<slug:kind>/", imports.import_start, name="import-start"),
    path("import/reports/<int:pk>/", imports.import_report, name="import-report"),
    path("import/reports/<int:pk>/recheck/", imports.import_recheck, name="import-recheck"),
    path("import/reports/<int:pk>/write/", imports.import_write, name="import-write"),
    path("pools/", pools.pool_list, name="pool-list"),
    path("pools/new/", pools.pool_new, name="pool-new"),
    path("pools/strategies/", pools.pool_simulation, name="pool-simulation"),
    path("pools/strategies/compare/", pools.pool_simulate, name="pool-simulate"),
    path("pools/mend/", pools.pool_mend, name="pool-mend"),
    path("pools/<int:pk>/", pools.pool_detail, name="pool"),
    path("pools/<int:pk>/questions/<int:question_pk>/", pools.pool_question, name="pool-question"),
    path("pools/<int:pk>/order/", pools.pool_order, name="pool-order"),
    path("pools/<int:pk>/remainder/", pools.pool_remainder_file, name="pool-remainder"),
    path("batches/", batches.batch_list, name="batch-list"),
    path("batches/new/", batches.batch_new, name="batch-new"),
    path("batches/<int:pk>/", batches.batch_detail, name="batch"),
    path("batches/<int:pk>/pause/", batches.batch_pause, name="batch-pause"),
    path("batches/<int:pk>/resume/", batches.batch_resume, name="batch-resume"),
    path("batches/<int:pk>/cancel/", batches.batch_cancel, name="batch-cancel"),
    path("batches/<int:pk>/extend/", batches.batch_extend, name="batch-extend"),
    path("batches/<int:pk>/reassign/", batches.batch_reassign, name="batch-reassign"),
    path("batches/<int:pk>/assessors/<int:assessor_pk>/remove/", batches.batch_remove, name="batch-remove"),
    path("batches/<int:pk>/desk/", desk.desk, name="desk"),
    path("batches/<int:pk>/desk/next/", desk.desk_next, name="desk-next"),
    path("batches/<int:pk>/desk/save/", desk.desk_save, name="desk-save"),
    path("batches/<int:pk>/desk/same/<int:pair_pk>/", verdicts.desk_same, name="desk-same"),
    path("batches/<int:pk>/desk/stop/", desk.desk_stop, name="desk-stop"),
    path("batches/<int:pk>/desk/highlight/", desk.desk_highlight, name="desk-highlight"),
]
