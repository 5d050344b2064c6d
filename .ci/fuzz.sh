#!/usr/bin/env bash
# fuzz.sh: every fuzz target in turn, FUZZTIME each.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rlE '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do
	grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | cut -d' ' -f2 | while read -r target; do
		echo "$target in $(dirname "$file")"
		go test -race -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-60s}" "$(dirname "$file")"
	done
done
