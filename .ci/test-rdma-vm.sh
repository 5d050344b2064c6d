#!/usr/bin/env bash
# test-rdma-vm.sh: every test named *SoftRoCE*, against the kernel's soft-RoCE
# devices in a small virtual machine (rxe-vm.sh), where they may not skip.
#
# RDMA_VM_PACKAGES names the packages instead of all that have such tests.
#
# Without the race detector, which would take the emulated processor too long,
# and without cgo, whose code is compiled for this machine's own processor.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(uname -s)" = Linux ] || { echo "test-rdma-vm needs Linux: soft-RoCE is a driver of its kernel"; exit 1; }
[ "$(uname -m)" = x86_64 ] || { echo "test-rdma-vm needs an x86-64 machine: the virtual machine is one"; exit 1; }

packages=${RDMA_VM_PACKAGES:-$(grep -rlE '^func Test[A-Za-z0-9_]*SoftRoCE' --include='*_test.go' rdma | xargs -n1 dirname | sort -u)}
binaries=$(mktemp -d)
trap 'rm -rf "$binaries"' EXIT
for p in $packages; do
	CGO_ENABLED=0 go test -c -o "$binaries/${p//\//-}.test" "./$p"
done
export DAISY_RXE=1 RXE_VM_PASS="DAISY_RXE ${RXE_VM_PASS:-}" RXE_VM_TIMEOUT=${RXE_VM_TIMEOUT:-600}
.ci/rxe-vm.sh "$binaries" -test.v -test.run SoftRoCE "$@"
