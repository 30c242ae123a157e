# SPDX-License-Identifier: Apache-2.0
# jvmscope. `make` builds (half a minute), `make demo` shows (three minutes), `make check` tests (up to 30 minutes),
# `make check-all` tests every combination (hours), `make bench` measures what doc/measured.md quotes (an hour).
# Set-up is automatic as root on Debian 12; otherwise each target says what to install.

BUILD ?= build
CC ?= gcc
PYTEST = /usr/bin/python3 -m pytest -q -p no:cacheprovider
ARGS ?=

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	@tools/setup build
	@CC=$(CC) meson setup $(BUILD) $(MESON_ARGS) >$(BUILD).log || { cat $(BUILD).log; rm -rf $(BUILD); exit 1; }
	@rm -f $(BUILD).log

# Builds of what runs without a VM under AddressSanitizer and UndefinedBehaviorSanitizer, and the fuzz targets.
build-san/build.ninja:
	@tools/setup build
	@CC=clang meson setup build-san -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=true >/dev/null
build-fuzz/build.ninja:
	@tools/setup build
	@CC=clang meson setup build-fuzz -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true -Dtests=false >/dev/null
sanitized: build-san/build.ninja
	@ninja -C build-san --quiet
fuzzers: build-fuzz/build.ninja
	@ninja -C build-fuzz --quiet

demo:
	@tools/setup build demo
	@$(MAKE) --no-print-directory all
	@tools/demo

# The daily suite. ARGS goes to pytest: make check ARGS='-k jfr'.
check:
	@tools/setup build check
	@tools/setup jdks || true
	@$(MAKE) --no-print-directory all sanitized fuzzers
	@$(PYTEST) tests -m 'not slow and not soak' $(ARGS)

check-all:
	@tools/setup build check jdks
	@$(MAKE) --no-print-directory all sanitized fuzzers
	@$(PYTEST) tests $(ARGS)

bench:
	@tools/setup build check jdks
	@$(MAKE) --no-print-directory all
	@bench/run $(ARGS)

lint:
	@tools/setup build lint
	@tools/lint

fuzz: fuzzers
	@tools/fuzz $(ARGS)

soak:
	@tools/setup build check jdks
	@$(MAKE) --no-print-directory all
	@$(PYTEST) tests -m soak $(ARGS)

install: all
	@ninja -C $(BUILD) install

clean:
	rm -rf $(BUILD) build-san build-fuzz build-*

.PHONY: all sanitized fuzzers demo check check-all bench lint fuzz soak install clean
