#!/usr/bin/env bash
# Installs what the tests need and a bare machine lacks. Where it may not install, it says what is
# missing and goes on: the test that needs it then fails by name.
set -euo pipefail

missing=()
need() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing+=("$2"); }
need git git
need ps procps
need gcc gcc            # the race detector links with it
need chromium chromium  # the report is opened in it
need nginx nginx-light  # real servers that the engine is held against
need haproxy haproxy
[ -e /usr/include/stdlib.h ] || missing+=(libc6-dev)

if [ "${#missing[@]}" -eq 0 ]; then
	exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "setup-test: please install: ${missing[*]}" >&2
	exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
