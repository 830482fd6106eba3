from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        # The Celery application becomes the current one, for @shared_task. Here rather than in config/__init__.py,
        # since the embedded servers' keepers import the package without needing Celery.
        import config.celery
        import config.worker  # noqa: F401 (its signals)
