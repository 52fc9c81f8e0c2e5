# Two commands: `make demo` and `make test`. Both need Rust; `make test` skips what it lacks tools for, and lists it at the end.
# TRUELINE_INSTALL=1 make test installs those tools first; in containers and in CI that is the default.

CARGO ?= cargo
FUZZ_SECONDS ?= 15
# Where tests/install.sh puts programs of cargo's.
# The system's programs too, which an ordinary user's PATH leaves out.
export PATH := $(CURDIR)/target/tools/bin:$(PATH):/usr/sbin:/sbin
# What a plain build leaves out is tested too.
FEATURES := --features trueline/cloud
SKIPPED := $(CURDIR)/target/skipped.txt

.PHONY: demo test fmt lint docs unit python packaging fuzz bench goldens dist dist-test site

# The main job on the disks of the five documents: no arguments, no root, no network but for crates.
demo:
	@mkdir -p target
	$(CARGO) build --release --locked
	$(CARGO) run --release --quiet --locked -- demo --html target/trueline-demo.html

# Everything. The runner of Rust's tests calls a skipped test `ok`; the list at the end says which ones were skipped, and why.
test:
	sh tests/install.sh
	@mkdir -p target && : > "$(SKIPPED)"
	TRUELINE_SKIPPED="$(SKIPPED)" $(MAKE) fmt lint docs unit python packaging fuzz
	@sh tests/skipped.sh "$(SKIPPED)"

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets $(FEATURES) --locked -- -D warnings
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --log-level error check licenses bans sources; \
	else echo "licences, bans and sources: no cargo-deny here" | tee -a "$${TRUELINE_SKIPPED:-/dev/null}"; fi

docs:
	@echo "docs: all crates, warnings are errors"
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps $(FEATURES) --locked --quiet

unit:
	$(CARGO) test --workspace $(FEATURES) --locked

python:
	sh tests/python.sh

packaging:
	sh tests/packaging.sh

fuzz:
	sh fuzz/run.sh $(FUZZ_SECONDS)

# Ratios in one run, against what people use today; nothing here decides a test. `make site` shows what it prints.
bench:
	$(CARGO) build --release --locked
	sh benches/run.sh

# The packages of this version, in target/dist.
dist:
	sh tests/install.sh dist
	sh packaging/dist.sh

# Each package in a clean root, and all of them built again in another directory: two release builds.
dist-test: dist
	sh tests/dist.sh
	sh packaging/reproduce.sh

# The documents as a site in target/site, for any web server or the file system.
site:
	sh tests/install.sh site
	sh site/build.sh

# Makes every golden disk anew with the real tools, then its expected output. Look at the difference before committing.
goldens:
	sh tests/freeze.sh
	TRUELINE_BLESS=1 $(CARGO) test -p trueline --test disks golden
