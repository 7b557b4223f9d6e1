#!/bin/sh
# Finds a Python that Foretell runs on, and lets it install: requirements/install.sh run|dev
# PYTHON names one; otherwise the first that is new enough is taken.
set -eu
cd "$(dirname "$0")/.."

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
seen=""
for python in python3 python3.14 python3.13 python3.12 python3.11; do
  version=$("$python" -c "$VERSION" 2>/dev/null) || continue
  "$python" -c "$NEW_ENOUGH" && exec "$python" requirements/install.py "$@"
  seen="$seen, $python is $version"
done
fail "Python 3.11 or newer is needed$seen; install one, or name it: make PYTHON=/path/to/python3.11"
