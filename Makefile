# Daisy. `make run` and `make test` do all that they need; the rest is for those
# who work on it. A list: make help

SHELL := /bin/bash
GO ?= go
MODEL := models/SmolLM2-135M-Instruct.Q4_1.gguf
OS := $(shell uname -s)

# ggml is compiled for this machine's processor, with its repacked kernels. Its
# repacking code draws a false warning from GCC.
ifeq ($(OS),Darwin)
NATIVE := -mcpu=native
else
NATIVE := -march=native -Wno-stringop-overflow
endif
export CGO_CFLAGS := -O3 $(NATIVE)
export CGO_CXXFLAGS := -O3 $(NATIVE)
export CGO_CPPFLAGS := -DGGML_USE_CPU_REPACK

# set-up comes before what needs it, also with -j.
.NOTPARALLEL:
.PHONY: help run test test-long test-rdma-vm build demo check bench model fuzz setup setup-test headless

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

run: setup build ## set up, build, open the app; without a display, run the demo
	@if [ "$(OS)" = Darwin ] || [ -n "$$DISPLAY" ] || [ -n "$$WAYLAND_DISPLAY" ]; then \
		exec bin/daisy; \
	else \
		echo "There is no display, so here is the demo instead of the app:"; \
		$(MAKE) --no-print-directory demo; \
	fi

test: setup-test model ## set up and run all tests, those of the windows under Xvfb
	.ci/test.sh

build: ## bin/daisy
	@mkdir -p bin
	$(GO) build -o bin/daisy ./app

headless: ## bin/daisy without windows: needs no GL or X11 libraries
	@mkdir -p bin
	$(GO) build -tags headless -o bin/daisy ./app

demo: setup build model ## two nodes on this machine answer a question together
	bin/daisy demo --nodes 2 --model $(MODEL) --prompt "What is the capital of France?"

test-long: model ## clusters against one rank on prompts of 1,000 and 5,000 tokens, without the race detector: ten minutes or more
	DAISY_TEST_LONG=1 $(GO) test -v -run '^TestLong' -timeout 60m ./inference

test-rdma-vm: setup-test ## the RDMA tests on real verbs devices: soft-RoCE in a small virtual machine
	.ci/test-rdma-vm.sh

check: ## gofmt, vet, staticcheck, import rules, go mod tidy
	.ci/check.sh

bench: setup build model ## speed: bin/daisy bench, then the Go benchmarks
	bin/daisy bench --model $(MODEL) --json
	$(GO) test -run '^$$' -bench . -benchtime 200x ./rdma/... ./inference/...

model: $(MODEL) ## the small real model that tests and the demo use

$(MODEL):
	.ci/model.sh $@

fuzz: ## every fuzz target for a minute (FUZZTIME=10s for another time)
	.ci/fuzz.sh

setup: ## system packages for building; as root on Debian it installs them
	@.ci/setup.sh build

setup-test: ## and those for the tests
	@.ci/setup.sh test
