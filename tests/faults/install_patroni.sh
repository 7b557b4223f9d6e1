#!/bin/sh
# Puts Patroni, etcd and PostgreSQL of Debian in place for tests/faults/test_patroni.py, and starts none of them.
set -eu

if command -v patroni >/dev/null && command -v etcd >/dev/null && ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing: patroni, etcd and a PostgreSQL server; install patroni, etcd-server and postgresql" >&2
  exit 1
fi

# No cluster of PostgreSQL's package is made, and no service is started by any package.
mkdir -p /etc/postgresql-common
grep -qs '^create_main_cluster' /etc/postgresql-common/createcluster.conf ||
  echo 'create_main_cluster = false' >>/etc/postgresql-common/createcluster.conf
if [ ! -e /usr/sbin/policy-rc.d ]; then
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends -o Dpkg::Options::=--force-confold \
  patroni etcd-server postgresql
