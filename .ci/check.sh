#!/usr/bin/env bash
# check.sh: what must hold of the source itself.
set -euo pipefail
cd "$(dirname "$0")/.."

bad=$(gofmt -l $(git ls-files '*.go'))
[ -z "$bad" ] || { echo "Not formatted by gofmt: $bad"; exit 1; }

go vet ./...
go vet -tags headless ./app/...
# Apple's half type-checks on any machine where no C is needed.
darwin=$(GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go list -e -f '{{if not .DepsErrors}}{{if .GoFiles}}{{.ImportPath}}{{end}}{{end}}' ./...)
GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go vet $darwin

go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
go test -run TestLayers ./app
go mod tidy -diff
