# pipkin. `make build` leaves the static program at bin/pipkin; `make demo` and
# `make test` need nothing but Debian 12 and Rust, and install the rest as root.
#
# PIPKIN_TARGET=musl|musl-debian|glibc says what to link with; without it, the build
# takes what the machine has and says which (scripts/build).

SHELL := /bin/bash
CARGO ?= cargo
export CARGO

.PHONY: build build-tests demo test check lint deny clean deps-build deps-test

build: deps-build
	scripts/build pipkin bin/pipkin

# What the tests with real containers run inside.
build-tests: build
	scripts/build pipkin-probe bin/probe

demo: build
	scripts/demo bin/pipkin

test: deps-test build-tests lint check

# The tests alone, without installing or linting anything.
check:
	$(CARGO) test --workspace --no-fail-fast

lint:
	scripts/lint

deny:
	$(CARGO) deny --all-features check

clean:
	$(CARGO) clean
	rm -rf bin

deps-build:
	scripts/deps build

deps-test:
	scripts/deps build test
