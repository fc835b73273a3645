#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each, e.g. scripts/fuzz.sh 30s.
set -euo pipefail
cd "$(dirname "$0")/.."

for file in $(git ls-files '*_test.go'); do
	for target in $(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$file"); do
		echo "== $target in $(dirname "$file")"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-30s}" "./$(dirname "$file")"
	done
done
