"""Making the people who sign in. What they may do in an eval set is said by `members`."""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from evalsets.errors import BadInput
from evalsets.models import User


def create_user(
    *, username: str, password: str, email: str = "", full_name: str = "", superuser: bool = False
) -> User:
    """Make somebody who can sign in. Raises BadInput for a name that is taken or a password that is too weak."""
    first_name, _, last_name = full_name.partition(" ")
    user = User(
        username=username,
        email=email,
        first_name=first_name,
        last_name=last_name,
        is_superuser=superuser,
        is_staff=superuser,
    )
    user.set_password(password)
    try:
        validate_password(password, user)
        user.full_clean(validate_unique=False)
        with transaction.atomic():
            user.save()
    except ValidationError as error:
        raise BadInput(" ".join(error.messages)) from None
    except IntegrityError:
        raise BadInput(f"There is a user {username!r} already.") from None
    return user
