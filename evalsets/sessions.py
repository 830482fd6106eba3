"""Sessions in the database, as Django keeps them, read by a statement that is planned once: each request reads one."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends import db

from evalsets.statements import Statement

LIVE_SESSION = Statement(
    """
    SELECT session_data FROM django_session
    WHERE session_key = %(key)s AND expire_date > statement_timestamp()
    """
)


class SessionStore(db.SessionStore):
    def load(self) -> dict[str, Any]:
        found = LIVE_SESSION.first({"key": self.session_key})
        if found is None:
            self._session_key = None  # so that nobody chooses the key of the next one
            return {}
        return self.decode(found[0])
