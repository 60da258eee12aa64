# Short names for what one does in this repository. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Debian's cmake, even where another one (from PyPI, say) comes first on PATH.
CMAKE := $(if $(wildcard /usr/bin/cmake),/usr/bin/cmake,cmake)
CTEST := $(if $(wildcard /usr/bin/ctest),/usr/bin/ctest,ctest)
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
export CMAKE CTEST JOBS DESTDIR

.PHONY: help setup build demo check test test-all test-cluster everything soak bench format lint \
  site install uninstall clean
help: ## list the targets
	@echo "Backstay. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1 \2/p' $(firstword $(MAKEFILE_LIST)) | while read -r name what; do printf '  make %-13s %s\n' "$$name" "$$what"; done

# Each target installs what it needs and no more (scripts/packages.txt); `make setup` installs all
# of it.
setup: ## install all that any target needs: Debian packages (as root), Python packages into .venv
	@scripts/setup test

build: ## build; leaves bin/backstay and bin/backstayd
	@scripts/setup build
	@scripts/build release

demo: ## kill a rank of a real LAMMPS run, watch it come back, compare the results
	@scripts/setup demo
	@scripts/build release backstay_program backstayd lammps_driver
	@examples/lammps/demo

check: setup ## after every change: rules of the sources, unit tests, one real job that is killed (some minutes)
	@scripts/check

test: setup ## build, and each promise once (20 minutes on 2 cores)
	@scripts/build release everything_to_test
	@scripts/test

test-all: everything ## every test but the soak's, with both sanitizers (an hour)
	@scripts/test all

test-cluster: everything ## only the tests on a cluster of hosts (as root; some minutes)
	@$(CTEST) --test-dir build/release --output-on-failure --no-tests=error -L '^cluster$$'

everything: setup ## build also the examples, tests and benchmarks
	@scripts/build release everything

soak: everything ## the long tests: many random crash points, fuzzers
	@scripts/setup soak
	@scripts/soak

bench: everything ## all benchmarks beside the limits of this machine, one table
	@bench/run

format: ## format all C and C++ sources
	@scripts/format

lint: everything ## formatting, and clang-tidy on changed files (ALL=1: on all)
	@scripts/lint

site: ## the pages of docs/ as a site that opens offline: build/site/index.html
	@scripts/setup site
	@.venv/bin/python scripts/site/build.py

install: ## install below PREFIX (default /usr/local)
	@scripts/setup build docs
	@scripts/build release
	@scripts/install "$(PREFIX)"

uninstall: ## remove what `make install` put below PREFIX
	@scripts/uninstall "$(PREFIX)"

clean: ## remove everything that was built or downloaded into this folder
	@scripts/clean
