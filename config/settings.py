"""Settings: one file, driven by the environment. docs/operations.md explains every variable."""

import os
from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF
from django.contrib.messages import constants as messages
from django.core.exceptions import ImproperlyConfigured
from django_guid.integrations import CeleryIntegration

from config.logs import chosen_form, logging_settings

BASE_DIR = Path(__file__).resolve().parent.parent


def env_flag(name: str, default: bool) -> bool:
    """The boolean in environment variable `name`: 1/true/yes/on or 0/false/no/off."""
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    raise ImproperlyConfigured(f"{name} is {value!r}; it must be 1/true/yes/on or 0/false/no/off")


def env_list(name: str, default: str = "") -> list[str]:
    return [item.strip() for item in os.environ.get(name, default).split(",") if item.strip()]


# The folder of the embedded servers' data, uploads and logs.
FAIRPOOL_HOME = Path(os.environ.get("FAIRPOOL_HOME") or BASE_DIR / "var").resolve()

# With DATABASE_URL the product runs on servers that exist; without it, it brings its own.
DATABASE_URL = os.environ.get("DATABASE_URL", "")
EMBEDDED = not DATABASE_URL
DATABASES: dict[str, Any]
if EMBEDDED:
    from config import embedded

    DATABASES = {"default": embedded.database_settings()}
    REDIS_URL = os.environ.get("REDIS_URL") or embedded.redis_url(FAIRPOOL_HOME)
    SECRET_KEY = os.environ.get("SECRET_KEY") or embedded.secret_key(FAIRPOOL_HOME)
else:
    DATABASES = {"default": dict(dj_database_url.parse(DATABASE_URL))}
    REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
    SECRET_KEY = os.environ.get("SECRET_KEY", "")
    if not SECRET_KEY:
        raise ImproperlyConfigured(
            "SECRET_KEY is not set. With DATABASE_URL given, set SECRET_KEY to a long random string "
            '(python -c "import secrets; print(secrets.token_urlsafe(64))").'
        )

DATABASES["default"].update(
    CONN_MAX_AGE=0,  # the pool keeps the connections
    CONN_HEALTH_CHECKS=True,  # one round trip a request, so that none meets a connection that Postgres has ended
)
if env_flag("DATABASE_POOL", True):
    DATABASES["default"].setdefault("OPTIONS", {}).update(
        pool={
            "min_size": int(os.environ.get("DATABASE_POOL_MIN", "1")),
            "max_size": int(os.environ.get("DATABASE_POOL_MAX", "8")),
            "timeout": 10,
        },
        # A connection keeps the plan of a statement that it sends a second time with other values (statements.py; what
        # Django itself sends has its values in the text and is no such statement).
        prepare_threshold=1,
    )
else:
    # Behind a transaction-mode PgBouncer: no server-side state may outlive a transaction.
    DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = True

DEBUG = env_flag("DEBUG", False)
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]" if EMBEDDED else "")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")

# Served over TLS (the usual case outside the embedded mode): cookies are secure and browsers told to stay on https.
BEHIND_TLS = env_flag("BEHIND_TLS", not EMBEDDED)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = BEHIND_TLS
SECURE_HSTS_SECONDS = int(os.environ.get("SECURE_HSTS_SECONDS", 60 * 60 * 24 * 365 if BEHIND_TLS else 0))
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = BEHIND_TLS
if env_flag("TRUST_FORWARDED_PROTO", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REDIRECT_EXEMPT = [r"^health/", r"^metrics$"]  # asked for from inside, past the proxy
SESSION_ENGINE = "evalsets.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = int(os.environ.get("SESSION_HOURS", "336")) * 3600
SESSION_COOKIE_NAME = os.environ.get("SESSION_COOKIE_NAME", "fairpool_session")
CSRF_COOKIE_NAME = os.environ.get("CSRF_COOKIE_NAME", "fairpool_csrf")
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],  # Bootstrap's icons are data: images inside its style sheet
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

INSTALLED_APPS = [
    "config",
    "evalsets",
    "pooling",
    "judging",
    "labels",
    "scoring",
    "django_htmx",
    "template_partials",
    "axes",
    "csp",
    "django_guid",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django_guid.middleware.guid_middleware",
    "config.middleware.request_log",
    "csp.middleware.CSPMiddleware",
    "evalsets.middleware.upload_limit",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "evalsets.middleware.no_nul_in_addresses",
    "evalsets.middleware.reader_time_zone",
    "evalsets.middleware.back_after_sign_in",
    "evalsets.middleware.forms_address",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["evalsets.templatetags.fairpool"],
        },
    }
]

AUTH_USER_MODEL = "evalsets.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "my-work"
LOGOUT_REDIRECT_URL = "sign-in"

# Guessing of passwords: ten failures of one name from one address close that pair for a quarter of an hour.
AXES_FAILURE_LIMIT = int(os.environ.get("SIGN_IN_FAILURE_LIMIT", "10"))
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "registration/locked_out.html"
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_CLIENT_IP_CALLABLE = "evalsets.callers.caller_address"
PROXY_COUNT = int(os.environ.get("PROXY_COUNT") or 0)

LANGUAGE_CODE = "en-gb"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATIC_ROOT = Path(os.environ.get("STATIC_ROOT") or FAIRPOOL_HOME / "static")
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = Path(os.environ.get("UPLOAD_ROOT") or FAIRPOOL_HOME / "uploads")
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
S3_BUCKET = os.environ.get("S3_BUCKET", "")
if S3_BUCKET:
    from botocore.config import Config

    STORAGES["default"] = {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": S3_BUCKET,
            "endpoint_url": os.environ.get("S3_ENDPOINT_URL") or None,
            "region_name": os.environ.get("S3_REGION") or None,
            "default_acl": None,
            "file_overwrite": False,
            "max_memory_size": 8 * 1024**2,  # what is larger is fetched into a file
            # A store that is away is found out while somebody waits.
            "client_config": Config(connect_timeout=5, read_timeout=60, retries={"max_attempts": 2}),
        },
    }

# Limits on what is sent to us, in bytes.
UPLOAD_LIMIT = int(os.environ.get("UPLOAD_LIMIT", 2 * 1024**3))
DECOMPRESSED_LIMIT = int(os.environ.get("DECOMPRESSED_LIMIT", 8 * 1024**3))
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024**2
FILE_UPLOAD_TEMP_DIR = os.environ.get("UPLOAD_TEMP_DIR") or None

CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = False  # the Job row says what was lost, and a person decides on the retry
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 12 * 3600, "socket_connect_timeout": 3}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

MESSAGE_TAGS = {messages.ERROR: "danger", messages.DEBUG: "secondary"}

LOGGING = logging_settings(chosen_form(os.environ), os.environ.get("LOG_LEVEL", "INFO"))
# A request's ID: the caller's if it has the form of a UUID, else one of our own; a job keeps that of its request.
DJANGO_GUID = {
    "GUID_HEADER_NAME": "X-Request-ID",
    "VALIDATE_GUID": True,
    "EXPOSE_HEADER": False,
    "INTEGRATIONS": [CeleryIntegration()],
}

# Figures for Prometheus: who may read them, and where a worker serves its own (nowhere without a port).
METRICS_TOKEN = os.environ.get("METRICS_TOKEN", "")
BEHIND_PROXY = bool(PROXY_COUNT) or env_flag("TRUST_FORWARDED_PROTO", False)
WORKER_METRICS_PORT = int(os.environ.get("WORKER_METRICS_PORT", "0"))
WORKER_METRICS_HOST = os.environ.get("WORKER_METRICS_HOST", "127.0.0.1")
