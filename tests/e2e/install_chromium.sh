#!/bin/sh
# Puts Debian's Chromium in place for the tests of the web app in a browser, where that is allowed.
set -eu

command -v chromium >/dev/null && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; then
    exit 0
  fi
fi
echo "missing: the package chromium; without it, the tests of the web app in a browser are skipped" >&2
