# Fairpool's web server and worker. docker-compose.yml runs them with everything they need; docs/operations.md tells how.
FROM python:3.13-slim AS packages
WORKDIR /build
COPY pyproject.toml requirements.lock ./
# What the product needs, at the versions of the lock; without the embedded servers and the development tools.
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir -c requirements.lock ".[s3]"

FROM python:3.13-slim
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    STATIC_ROOT=/app/collected UPLOAD_ROOT=/data/uploads FAIRPOOL_HOME=/data
RUN useradd --system --uid 10001 --create-home fairpool && install -d -o fairpool -g fairpool /data /data/uploads
COPY --from=packages /venv /venv
WORKDIR /app
COPY . .
# Only to load the settings: nothing is connected to, and the key stays in this one command.
RUN DATABASE_URL=postgresql://none/none SECRET_KEY=build python manage.py collectstatic --noinput
USER fairpool
VOLUME /data
EXPOSE 8000
# WEB_CONCURRENCY sets the number of processes, GUNICORN_CMD_ARGS anything else.
ENV WEB_CONCURRENCY=2
CMD ["gunicorn", "config.wsgi", "--bind", "0.0.0.0:8000", "--threads", "4", "--preload", "--worker-tmp-dir", "/dev/shm", "--no-control-socket"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "scripts/healthcheck.py"]
