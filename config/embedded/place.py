"""Where a server's program and data lie, and as whom it runs.

A normal user's servers run as that user, with the program in the virtual environment and the data in the home.
Postgres refuses to run as root, and a server has no business doing so. As root the servers run as the system user
`fairpool`, who may read neither root's folders nor the checkout; we open no folder that is not ours, so program and
data go to /var/lib/fairpool.
"""

import hashlib
import importlib.metadata
import os
import pwd
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from config.embedded.home import EmbeddedError, Home
from config.embedded.tether import tether

ROOTS_FOLDER = Path("/var/lib/fairpool")
ACCOUNT = "fairpool"


@dataclass(frozen=True)
class Place:
    packages: Path  # the folder that holds the wheel's packages, as site-packages does
    folder: Path  # the server's own folder; its data is inside
    account: pwd.struct_passwd | None  # whom to run as; None: as we are

    def own(self, path: Path) -> None:
        """Give a file or folder of ours to the server's account."""
        if self.account:
            os.chown(path, self.account.pw_uid, self.account.pw_gid)

    def start(self, arguments: list[str], *, log: int, end_with_us: int) -> "subprocess.Popen[bytes]":
        """Start a server as its account, in its folder; it gets the signal `end_with_us` should we be killed."""
        account = self.account
        return subprocess.Popen(
            arguments,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
            preexec_fn=lambda: tether(end_with_us),
        )

    def run(self, arguments: list[str]) -> "subprocess.CompletedProcess[str]":
        """Run one of the server's tools as its account. Raises CalledProcessError."""
        account = self.account
        return subprocess.run(
            arguments,
            check=True,
            capture_output=True,
            text=True,
            cwd=self.folder,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        )


def place_for(home: Home, server: str, wheel: str, packages: tuple[str, ...]) -> Place:
    """Where the `server` of `home` lives; makes its folder. `packages` are the folders that `wheel` installed."""
    try:
        version = importlib.metadata.version(wheel)
        installed = Path(str(importlib.metadata.distribution(wheel).locate_file("")))
    except importlib.metadata.PackageNotFoundError as error:
        raise EmbeddedError(
            f"The package {wheel} is not installed, so there is no embedded {server}.\n"
            "Run `make setup`, or point DATABASE_URL and REDIS_URL at servers that exist."
        ) from error
    try:
        if os.geteuid() != 0:
            folder = home.path / server
            folder.mkdir(mode=0o700, exist_ok=True)
            return Place(installed, folder, None)
        owner = home.path.stat().st_uid
        if owner != 0 and (home.path / server).exists():
            raise EmbeddedError(
                f"{home.path} and the data in it belong to {_user_name(owner)}.\n"
                "Run as that user, or set FAIRPOOL_HOME to another folder."
            )
        ROOTS_FOLDER.mkdir(mode=0o755, exist_ok=True)
        place = Place(
            _readable_copy(installed, wheel, version, packages), _roots_data(home, server), _account()
        )
        place.own(place.folder)
        return place
    except OSError as error:
        raise EmbeddedError(f"The embedded {server} has no place to live: {error}.") from error


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def folder_outside(home: Home) -> Path:
    """The folder under /var/lib where the servers of `home` live when root runs them."""
    path = home.path.resolve()
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    # The hash alone would do; the name is for whoever looks into the folder.
    name = (path.parent if path.name == "var" else path).name or "root"
    return ROOTS_FOLDER / f"{name}-{digest}"


def _roots_data(home: Home, server: str) -> Path:
    folder = folder_outside(home)
    folder.mkdir(mode=0o755, exist_ok=True)
    (folder / server).mkdir(mode=0o700, exist_ok=True)
    return folder / server


def _readable_copy(installed: Path, wheel: str, version: str, packages: tuple[str, ...]) -> Path:
    target = ROOTS_FOLDER / f"{wheel}-{version}"
    if not target.exists():
        draft = ROOTS_FOLDER / f".{wheel}-{version}.{os.getpid()}"
        draft.mkdir(mode=0o755)
        for package in packages:
            shutil.copytree(installed / package, draft / package, symlinks=True)
        for folder, _, files in os.walk(draft):
            Path(folder).chmod(0o755)
            for name in files:
                file = Path(folder, name)
                if not file.is_symlink():
                    file.chmod(file.stat().st_mode & 0o755 | 0o444)
        try:
            draft.rename(target)
        except OSError:
            if not target.exists():  # else another process was faster
                raise
            shutil.rmtree(draft)
    return target


def _account() -> pwd.struct_passwd:
    for attempt in ("there", "made"):
        try:
            return pwd.getpwnam(ACCOUNT)
        except KeyError:
            if attempt == "there":
                _make_account()
    raise EmbeddedError(
        f"The servers need an unprivileged system user, and `{ACCOUNT}` could not be made.\n"
        f"Make it by hand (useradd --system {ACCOUNT}), or run Fairpool as a normal user."
    )


def _make_account() -> None:
    shell = "/usr/sbin/nologin"
    commands = (
        [
            "useradd",
            "--system",
            "--user-group",
            "--no-create-home",
            "--home-dir",
            str(ROOTS_FOLDER),
            "--shell",
            shell,
        ],
        ["adduser", "-S", "-D", "-H", "-h", str(ROOTS_FOLDER), "-s", shell],  # BusyBox
    )
    for command in commands:
        if program := shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            subprocess.run([program, *command[1:], ACCOUNT], check=False, capture_output=True)
            return


def set_aside(folder: Path) -> Path:
    """Move a data folder out of the way, losing nothing; returns where it went."""
    target = folder.with_name(f"{folder.name}.set-aside-{time.strftime('%Y%m%d-%H%M%S')}")
    folder.rename(target)
    return target
