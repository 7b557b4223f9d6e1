#!/bin/sh
# Finds a Python that Foretell runs on, and lets it install: requirements/install.sh run|dev|audit|docs
# PYTHON names one. Otherwise an environment that has its packages keeps its own; a new one gets the first
# optimized CPython (src/foretell/runtime/interpreter.py says how that is known), or else the first that is
# new enough, of those on the PATH and the system's.
set -eu
cd "$(dirname "$0")/.."

SYSTEM_PYTHON=${SYSTEM_PYTHON:-/usr/bin/python3}
ENVIRONMENT=.venv/bin/python
STAMP=.venv/.foretell-run
NEW_ENOUGH='import sys; sys.exit(sys.version_info < (3, 11))'
VERSION='import sys; sys.stdout.write("%d.%d.%d" % sys.version_info[:3])'

fail() {
  echo "error: $1" >&2
  exit 1
}

if [ -n "${PYTHON:-}" ]; then
  version=$("$PYTHON" -c "$VERSION" 2>/dev/null) || fail "$PYTHON is not a Python that runs; set PYTHON to one, 3.11 or newer"
  "$PYTHON" -c "$NEW_ENOUGH" || fail "$PYTHON is Python $version, and 3.11 or newer is needed; set PYTHON to one"
  exec "$PYTHON" requirements/install.py "$@"
fi
if [ -f "$STAMP" ] && "$ENVIRONMENT" -c "$NEW_ENOUGH" 2>/dev/null; then
  exec "$ENVIRONMENT" requirements/install.py "$@"
fi

seen=""
plain=""
# Lets an optimized Python install, and remembers the first plain one and those that are too old.
consider() {
  python=$1
  shift
  version=$("$python" -c "$VERSION" 2>/dev/null) || return 0
  if "$python" -c "$NEW_ENOUGH"; then
    plain=${plain:-$python}
    if "$python" -I src/foretell/runtime/interpreter.py 2>/dev/null; then
      exec "$python" requirements/install.py "$@"
    fi
  else
    seen="$seen, $python is $version"
  fi
}
for name in python3 python3.14 python3.13 python3.12 python3.11; do
  consider "$name" "$@"
done
first=$(command -v python3 || true)
separator=$IFS
IFS=:
for folder in $PATH; do
  IFS=$separator
  [ "$folder/python3" = "$first" ] || consider "$folder/python3" "$@"
done
IFS=$separator
consider "$SYSTEM_PYTHON" "$@"
[ -z "$plain" ] || exec "$plain" requirements/install.py "$@"
fail "Python 3.11 or newer is needed$seen; install one, or name it: make PYTHON=/path/to/python3.11"
