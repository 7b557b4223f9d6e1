#!/bin/sh
# Plays the README on a machine that has git, make and Python alone: a clean copy of this tree, cold
# package caches, and a PATH without npm and node even where they are installed.
set -eu
cd "$(dirname "$0")/.."

READY_WITHIN_S=${READY_WITHIN_S:-600}
PORT=${PORT:-8711}
CHAIN_PORT=${CHAIN_PORT:-8712}

# What every Debian has (coreutils and the other essential packages), and what the README asks for.
BASE="sh bash env cat cp mv rm mkdir rmdir ln ls touch chmod dirname basename readlink realpath mktemp \
  sed grep expand tr sort head tail cut wc tee date sleep uname id nproc hostname true false test expr \
  printf echo kill ps find xargs tar gzip df stat ldd git make"

python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
folder=$(mktemp -d)
pid=""
finish() {
  status=$?
  if [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; then kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; fi
  [ "$status" -eq 0 ] || cat "$folder/output" 2>/dev/null || true
  rm -rf "$folder"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

mkdir "$folder/bin" "$folder/tree" "$folder/caches"
for name in $BASE; do
  path=$(command -v "$name" 2>/dev/null) || continue
  case "$path" in /*) ln -s "$path" "$folder/bin/$name" ;; *) [ -x "/usr/bin/$name" ] && ln -s "/usr/bin/$name" "$folder/bin/$name" || true ;; esac
done
ln -s "$python" "$folder/bin/python3"
git ls-files --cached --others --exclude-standard -z | tar --null --files-from=- -cf - | tar -xf - -C "$folder/tree"

export PATH="$folder/bin"
export PIP_CACHE_DIR="$folder/caches/pip" UV_CACHE_DIR="$folder/caches/uv" npm_config_cache="$folder/caches/npm"
export FORETELL_PORT="$PORT" FORETELL_CHAIN_PORT="$CHAIN_PORT"
unset VIRTUAL_ENV NODE_PATH PYTHON || true
for name in node npm npx; do
  if command -v "$name" >/dev/null 2>&1; then echo "error: $name is on the bare PATH" >&2; exit 1; fi
done
cd "$folder/tree"

is_ok() {
  python3 -c "import urllib.request as u; u.build_opener(u.ProxyHandler({})).open('http://127.0.0.1:$PORT/clob/ok', timeout=2)" 2>/dev/null
}
start() {
  began=$(date +%s)
  make up >"$folder/output" 2>&1 &
  pid=$!
  until is_ok; do
    kill -0 "$pid" 2>/dev/null || { echo "error: make up ended before it answered" >&2; exit 1; }
    [ $(($(date +%s) - began)) -lt "$READY_WITHIN_S" ] || { echo "error: nothing answers after $READY_WITHIN_S s" >&2; exit 1; }
    sleep 0.2
  done
  until [ -f .foretell/ready.json ]; do sleep 0.2; done
  echo "$1: ready after $(($(date +%s) - began)) s"
}
# SIGTERM, since a shell has its background processes ignore Ctrl-C; make passes it on.
stop() {
  kill -TERM "$pid"
  wait "$pid" || true
  pid=""
  until [ ! -f .foretell/ready.json ]; do sleep 0.1; done
}

start "first make up, cold caches"
cat "$folder/output"
.venv/bin/foretell demo | tail -n 3
stop
start "second make up"
stop
