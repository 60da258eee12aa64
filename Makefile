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
export CMAKE CTEST JOBS

.PHONY: help setup build test
help: ## list the targets
	@echo "Backstay. Targets:"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | column -t -s '|'

setup: ## install what is missing (Debian packages as root, Python packages into .venv)
	@scripts/setup

build: setup ## build; leaves bin/backstay and bin/backstayd
	@scripts/build release

test: build ## build and run every test (under 30 minutes on 2 cores)
	@scripts/test
