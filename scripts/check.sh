#!/usr/bin/env bash
# Everything that can be said about the code without running the tests. Run by `make check` and .ci/run.
set -u
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

step() {
    local name=$1
    shift
    printf '== %s\n' "$name"
    if ! "$@"; then
        printf 'FAILED: %s (%s)\n' "$name" "$*" >&2
        exit 1
    fi
}

deploy_check() {
    # As on a real server: behind TLS, with a database and a broker of its own. Nothing is connected to.
    DATABASE_URL=postgresql://fairpool@localhost/fairpool REDIS_URL=redis://localhost/0 \
        SECRET_KEY=$(python -c 'import secrets; print(secrets.token_urlsafe(64))') \
        ALLOWED_HOSTS=fairpool.example CSRF_TRUSTED_ORIGINS=https://fairpool.example \
        python manage.py check --deploy --fail-level WARNING
}

step "ruff: rules" ruff check .
step "ruff: format" ruff format --check .
step "mypy: types" mypy .
step "import-linter: layers" lint-imports
step "djlint: templates" djlint --lint --quiet templates
step "Django: missing migrations" python manage.py makemigrations --check --dry-run
step "Django: deployment" deploy_check
printf 'All checks passed.\n'
