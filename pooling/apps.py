from django.apps import AppConfig


class PoolingConfig(AppConfig):
    name = "pooling"
    verbose_name = "Pooling"
    default_auto_field = "django.db.models.BigAutoField"
