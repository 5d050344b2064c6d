#!/usr/bin/env bash
# check.sh: what must hold of the source itself.
set -euo pipefail
cd "$(dirname "$0")/.."

bad=$(gofmt -l $(git ls-files '*.go'))
[ -z "$bad" ] || { echo "Not formatted by gofmt: $bad"; exit 1; }

# With the race detector, since that is how the tests have compiled everything.
plain_flags=$(go env GOFLAGS)
export GOFLAGS="$plain_flags -race"
go vet ./...
go vet -tags headless ./app/...
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
go test -run TestLayers ./app
export GOFLAGS=$plain_flags

# Apple's half type-checks on any machine where no C is needed: every package that
# does without, and with its tests where they do too.
export GOOS=darwin GOARCH=arm64 CGO_ENABLED=0
plain=$(go list -e -f '{{if not .DepsErrors}}{{if .GoFiles}}{{.ImportPath}}{{end}}{{end}}' ./...)
tests_need_c=$(go list -e -test -f '{{if .DepsErrors}}{{.ForTest}}{{end}}' ./... | sort -u)
go build $plain
go vet $(comm -23 <(sort <<<"$plain") <(sort <<<"$tests_need_c"))
unset GOOS GOARCH CGO_ENABLED

go mod tidy -diff
