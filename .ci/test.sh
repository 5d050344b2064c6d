#!/usr/bin/env bash
# test.sh: first what takes minutes, without the race detector: clusters against
# one rank on long prompts, and groups of up to eight ranks over the fake verbs
# (with it they are smaller). Then all tests with it; those of the windows and the
# tray under Xvfb with a session bus of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
DAISY_TEST_LONG=1 go test -run '^TestLong' -timeout 30m ./inference
go test -run Conformance -timeout 20m ./rdma/verbs
export DAISY_TEST_DISPLAY=1 LIBGL_ALWAYS_SOFTWARE=1
tests=(go test -race -timeout 20m "$@" ./...)
if [ "$(uname -s)" = Darwin ]; then
	exec "${tests[@]}"
fi
exec xvfb-run -a -s "-screen 0 1400x1000x24" dbus-run-session -- "${tests[@]}"
