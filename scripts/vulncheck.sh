#!/usr/bin/env bash
# Runs govulncheck. It needs the vulnerability database from the network; where that cannot be reached
# this says so and succeeds, since it says nothing about the code. Findings fail.
set -uo pipefail

out=$("$1" ./... 2>&1)
status=$?
# 3 is govulncheck's own exit for findings.
case "$status" in
0) echo "govulncheck: no known vulnerability is reached" ;;
3)
	echo "$out"
	exit 1
	;;
*)
	if grep -qE 'fetching vulnerabilities|no such host|dial tcp|connection refused|i/o timeout|proxyconnect' <<<"$out"; then
		echo "govulncheck: NOT RUN, the vulnerability database cannot be reached"
		exit 0
	fi
	echo "$out"
	exit 1
	;;
esac
