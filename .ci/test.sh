#!/usr/bin/env bash
# test.sh: first groups of up to eight ranks over the fake verbs, without the race
# detector (with it they are smaller), then all tests with it; those of the windows
# and the tray under Xvfb with a session bus of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
go test -run Conformance -timeout 20m ./rdma/verbs
export DAISY_TEST_DISPLAY=1 LIBGL_ALWAYS_SOFTWARE=1
tests=(go test -race -timeout 20m "$@" ./...)
if [ "$(uname -s)" = Darwin ]; then
	exec "${tests[@]}"
fi
exec xvfb-run -a -s "-screen 0 1400x1000x24" dbus-run-session -- "${tests[@]}"
