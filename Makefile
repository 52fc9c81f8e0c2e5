# Two commands: `make demo` and `make test`. Both need Rust; `make test` installs what else it can.

CARGO ?= cargo
FUZZ_SECONDS ?= 15
# Where tests/install.sh puts programs of cargo's.
export PATH := $(CURDIR)/target/tools/bin:$(PATH)

.PHONY: demo test fmt lint docs unit fuzz bench goldens

# The main job on the disks of the five documents: no arguments, no root, no network but for crates.
demo:
	@mkdir -p target
	$(CARGO) run --release --quiet -- demo --html target/trueline-demo.html

# Everything. What cannot run here is named, with the reason.
test:
	sh tests/install.sh
	$(MAKE) fmt lint docs unit fuzz

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --log-level error check licenses bans sources; \
	else echo "skipped: licences, bans and sources: no cargo-deny here"; fi

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

unit:
	$(CARGO) test --workspace --locked

fuzz:
	sh fuzz/run.sh $(FUZZ_SECONDS)

# Ratios in one run, against what people use today; nothing here decides a test.
bench:
	$(CARGO) build --release --quiet
	sh benches/run.sh

# Makes every golden disk anew with the real tools, then its expected output. Look at the difference before committing.
goldens:
	sh tests/freeze.sh
	TRUELINE_BLESS=1 $(CARGO) test --test golden
