# SPDX-License-Identifier: MIT OR Apache-2.0
# The commands a person needs. `make` without a goal lists them.

export PATH := $(HOME)/.cargo/bin:$(PATH)
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Where `make demo` leaves its reports, claims.json and the runs.
OUT ?= reproduction

.DEFAULT_GOAL := help
.PHONY: help install build guest python demo dist site test soak fmt lint bless clean

help: ## List these goals
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' $(MAKEFILE_LIST) | expand -t 18

install: ## Install what building needs (apt packages, the pinned Rust toolchain)
	@scripts/install.sh

build: install ## Build the program: target/release/schedlab
	cargo build --release --locked -p schedlab
	@scripts/guest.sh $(TARGET)/release

guest: ## Build what runs in the guests of `schedlab vm` (`make build` does it too)
	@scripts/guest.sh

python: install ## Install the Python package, into the active environment or into target/venv
	@python/install.sh

demo: ## Build, simulate, measure this machine and virtual machines (as ./lab demo)
	@./lab demo $(OUT)

dist: ## Build a tarball and a .deb for machines without a compiler
	@./lab dist

site: ## Build the static site with the playground: target/site/index.html
	@cargo xtask site

test: ## Run every test; PARTS="tidy browser" runs these parts, PARTS=--with-bare all of them
	@scripts/install.sh test
	@cargo xtask test $(PARTS)

soak: ## Search longer than the tests do: random workloads, loaded guests (an hour)
	@scripts/install.sh
	@cargo xtask soak --seeds 2000 --minutes 2

fmt: ## Format the code
	cargo fmt --all

lint: ## Check style without running tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo xtask tidy

bless: ## Accept the present output as the expected one (goldens, snapshots, formats)
	cargo xtask bless

clean: ## Remove everything that was built
	cargo clean
