# Sourced by ci/gate, ci/native and ci/test with its own name: goes to the project's root, makes .venv with what that one
# needs, and puts it on PATH. ci/environment.py decides what that is.
# usage: . ci/environment.sh gate|native|test

# Under `env -i` bash has a PATH of its own but hands it to nobody.
export PATH
# What the caller's Python is told must not reach ours.
unset PYTHONPATH PYTHONHOME
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
  if [ "$(id -u)" = 0 ] && [ "$python" = python3 ] && command -v apt-get >/dev/null; then
    echo "ci: installing the Debian package python3"
    export PATH="$PATH:/usr/sbin:/sbin" # dpkg refuses to work without
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends python3; } >/dev/null || exit 2
  else
    echo "ci: $python is missing: install the Debian package python3" >&2
    exit 2
  fi
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  echo "ci: $("$python" --version 2>&1) is too old: install Python 3.10 or newer and name it in PYTHON" >&2
  exit 2
fi
"$python" ci/environment.py "$1" || exit 2
export PATH="$PWD/.venv/bin:$PATH"
