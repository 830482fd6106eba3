from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person who signs in. What they may do is said per eval set by `Member`."""

    def __str__(self) -> str:
        return self.get_full_name() or self.username
