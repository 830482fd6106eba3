"""What every route of the HTTP API has in common, and the routes of the eval set itself.

Each app brings its routes in its own `api`; config/api.py mounts them. Routes call the services that pages and
commands call.
"""
