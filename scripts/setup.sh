#!/bin/sh
# Makes .venv with everything in requirements.lock. Run by `make setup`; quick when nothing has changed.
# Needs a Python from 3.11 on; PYTHON names another one than the first that fits.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

wanted=$(cksum < requirements.lock)
stamp=.venv/installed
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && .venv/bin/python -c '' 2>/dev/null; then
    exit 0
fi

fits() { command -v "$1" >/dev/null && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=
for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    if fits "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    say "Fairpool needs Python 3.11 or newer, and none was found."
    say "Install one (on Debian or Ubuntu: apt install python3 python3-venv), or name it: make setup PYTHON=/path/to/python"
    exit 1
fi

# A .venv that is there may be of an older Python that is gone, or one that a failed try left behind.
if [ -e .venv ] && ! { fits .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1; }; then
    say "The folder .venv does not work any more; it is made anew."
    rm -rf .venv
fi

make_venv() { "$python" -m venv .venv >/dev/null 2>&1; }

if [ ! -e .venv ]; then
    say "Making .venv with $("$python" --version) …"
    if ! make_venv; then
        rm -rf .venv
        # Debian and Ubuntu ship Python without the part that makes environments.
        version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            say "This Python cannot make environments; installing Debian's python3-venv …"
            { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv "$version-venv"; } >&2 || true
        fi
        if ! make_venv; then
            rm -rf .venv
            # Without root: pip, where it is there, can fill an environment that has no pip of its own.
            if "$python" -m venv --without-pip .venv 2>/dev/null &&
               "$python" -m pip --python .venv/bin/python install --quiet pip >&2 2>/dev/null; then
                say "(The environment was made with the pip of $python.)"
            elif rm -rf .venv; command -v virtualenv >/dev/null && virtualenv --quiet -p "$python" .venv >&2; then
                :
            else
                rm -rf .venv
                say "This Python cannot make environments. Type this, then try again:"
                say "    sudo apt install python3-venv"
                exit 1
            fi
        fi
    fi
fi

say "Installing the packages of requirements.lock into .venv (a few minutes the first time) …"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock >&2
printf '%s\n' "$wanted" > "$stamp"
say "Ready."
