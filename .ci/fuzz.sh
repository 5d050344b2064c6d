#!/usr/bin/env bash
# fuzz.sh: every fuzz target in turn, FUZZTIME each.
set -euo pipefail
cd "$(dirname "$0")/.."

# On a busy machine Go's fuzzer sometimes reports its own time-out as a failure
#. It writes no input then, and is asked once more.
fuzz() { # target, package
	local log
	log=$(mktemp)
	go test -race -run '^$' -fuzz "^$1\$" -fuzztime "${FUZZTIME:-60s}" "$2" 2>&1 | tee "$log" && return
	grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log" || return 1
	go test -race -run '^$' -fuzz "^$1\$" -fuzztime "${FUZZTIME:-60s}" "$2"
}

grep -rlE '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do
	grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | cut -d' ' -f2 | while read -r target; do
		echo "$target in $(dirname "$file")"
		fuzz "$target" "$(dirname "$file")"
	done
done
