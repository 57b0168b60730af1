# pipkin. `make build` leaves the static program at bin/pipkin; `make demo` and
# `make test` need nothing but Debian 12 and Rust, and install the rest as root.
#
# PIPKIN_TARGET=musl|musl-debian|glibc says what to link with; without it, the build
# takes what the machine has and says which (scripts/build).

SHELL := /bin/bash
CARGO ?= cargo
export CARGO

.PHONY: build build-tests build-bench demo test check bench bench-mounts lint deny clean \
	deps-build deps-test deps-bench

build: deps-build
	scripts/build pipkin bin/pipkin

# What the tests with real containers run inside.
build-tests: build
	scripts/build pipkin-probe bin/probe
	scripts/build pipkin-bench bin/bench/nothing nothing

demo: build
	scripts/demo bin/pipkin

test: deps-test build-tests lint check

# The tests alone, without installing or linting anything.
check:
	$(CARGO) test --workspace --no-fail-fast

# The programs that are measured beside pipkin, and the one that measures.
build-bench: build
	scripts/build pipkin-bench bin/bench/pipkin-bench
	for program in floor mounts nothing seccomp; do \
		scripts/build pipkin-bench bin/bench/$$program $$program || exit; \
	done

# Compares pipkin with other runtimes. QUICK=1 takes less than two minutes and leaves its
# report in target/bench; RUNTIMES=NAME=PATH,... adds runtimes; OUT says where to write.
bench: deps-bench build-bench
	bin/bench/pipkin-bench $(if $(QUICK),--quick) $(if $(OUT),--out $(OUT)) \
		$(if $(RUNTIMES),--runtimes $(RUNTIMES))

# What an empty string for data costs mount(2).
bench-mounts: deps-build
	scripts/build pipkin-bench bin/bench/mounts mounts
	bin/bench/mounts

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

deps-bench:
	scripts/deps build test
