# SPDX-License-Identifier: Apache-2.0
# jvmscope. `make` builds (half a minute), `make demo` shows (three minutes), `make check` tests (up to 30 minutes),
# `make check-all` tests every combination (hours), `make check-arm` tests on an emulated aarch64 (an hour),
# `make bench` measures what doc/measured.md quotes (an hour), `make bench-quick` says what got slower (ten minutes).
# Set-up is automatic as root on Debian 12; otherwise each target says what to install.

# `make CROSS=aarch64` builds for another architecture, by tools/cross/aarch64.ini, into build-aarch64/.
CROSS ?=
BUILD ?= build$(if $(CROSS),-$(CROSS))
CC ?= gcc
# Python's and pytest's compiled files are kept: they take seven seconds of each process.
PYTEST = PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/$(BUILD)/python /usr/bin/python3 -m pytest -q -p no:cacheprovider
# How many tests run at once: one more than there are processors, because a test also waits, and 4 at most.
# The tests of one file run one after the other.
JOBS ?= $(shell n=$$(nproc); echo $$((n < 3 ? n + 1 : 4)))
ARGS ?=
# All tests, or those of the folders and files that ARGS names.
WHICH = $(if $(filter tests/%,$(ARGS)),,tests)

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	@tools/setup build $(if $(CROSS),cross-$(CROSS))
	@CC=$(CC) meson setup $(BUILD) $(if $(CROSS),--cross-file tools/cross/$(CROSS).ini) $(MESON_ARGS) >$(BUILD).log || { cat $(BUILD).log; rm -rf $(BUILD); exit 1; }
	@rm -f $(BUILD).log

# A build of what runs without a VM under AddressSanitizer and UndefinedBehaviorSanitizer, with the
# fuzz targets, whose libraries tell the fuzzer what it has reached.
build-san/build.ninja:
	@tools/setup build
	@CC=clang meson setup build-san -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=true -Dfuzz=true >/dev/null
sanitized: build-san/build.ninja
	@ninja -C build-san --quiet

demo:
	@tools/setup build demo
	@$(MAKE) --no-print-directory all
	@tools/demo

# Three VMs of two services, recorded, collected and compared: a minute.
demo-fleet:
	@tools/setup build
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) tools/demo-fleet

# The daily suite. ARGS goes to pytest: make check ARGS='-k jfr', or ARGS=tests/integration/heap for what one folder has.
check:
	@tools/setup build check
	@tools/setup jdks || true
	@$(MAKE) --no-print-directory all sanitized
	@ninja -C $(BUILD) --quiet jvmscope-static
	@$(PYTEST) -n $(JOBS) --dist loadfile --run-again $(WHICH) -m 'not slow and not soak and not measured' $(ARGS)

# The tests that need no clock, on arm64's JDKs in an emulator (hours: an emulated VM takes ten times as long). ARM_JDKS says
# on which JDKs; 17 is there in any case, because its tools read recordings. The list names what passes there; what measures
# time, or starts a debugger or a container, is not in it.
ARM_JDKS ?= 17
ARM_TESTS = \
	unwind/test_walker.py::test_tiny_methods unwind/test_walker.py::test_shares_are_known unwind/test_walker.py::test_ten_thousand_frames \
	recordings/test_amounts.py::test_all_captures_at_once_give_what_the_program_did agent/test_agent.py::test_program_is_left_alone \
	agent/test_agent.py::test_the_agents_run_on_musl agent/test_agent.py::test_traces_of_tracers_are_found_with_each_c_library \
	cpu/test_times.py::test_counts_are_exact cpu/test_times.py::test_every_construct_runs_as_before \
	hprof/test_hprof_monitors.py::test_time_blocked_is_what_the_program_measured \
	hprof/test_hprof_monitors.py::test_a_recording_has_monitor_events hprof/test_hprof_heap.py::test_text_has_the_known_heap \
	trace/test_trace.py::test_every_type_of_argument_and_result trace/test_exceptions.py::test_exceptions_and_events_of_the_vm \
	coverage/test_coverage.py::test_each_line_and_branch_as_it_ran \
	attach/test_attach.py::test_every_output_of_hprof_is_reported_and_fetched jvmpi/test_jvmpi.py::test_profiler_exit \
	trace/test_trace.py::test_values_are_readable_without_options trace/test_trace.py::test_conditions \
	trace/test_log.py::test_locals_and_fields_at_lines attach/test_inspect.py::test_classes_and_statics \
	coverage/test_coverage.py::test_runs_add_up_and_totals_are_stable hprof/test_hprof_sites.py::test_counts_are_the_truth \
	coverage/test_coverage.py::test_what_adds_nothing_is_refused trace/test_log.py::test_reads_and_writes_of_fields \
	trace/test_log.py::test_a_line_reaches_fields_lengths_statics_and_the_thread \
	trace/test_log.py::test_a_comma_before_a_place_separates_logpoints \
	trace/test_log.py::test_attach_and_stop_leave_the_program_as_it_was \
	trace/test_rows.py::test_rows_are_chosen_by_thread_and_by_the_method_in_which_they_stand
check-arm:
	@tools/setup build check jdks
	@tools/jdks setup --arch aarch64 17 $(ARM_JDKS)
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory CROSS=aarch64 all
	@JVMSCOPE_TEST_ARCH=aarch64 $(PYTEST) $(ARM_TESTS:%=tests/integration/%) $(ARGS)

check-all:
	@tools/setup build check jdks
	@$(MAKE) --no-print-directory all sanitized
	@$(PYTEST) $(WHICH) $(ARGS)

bench:
	@tools/setup build check jdks
	@$(MAKE) --no-print-directory all
	@bench/run $(ARGS)

# CPU times by those of an anchor in the same round, compared with bench/quick.json; ARGS=--save writes that.
bench-quick:
	@tools/setup build check jdks
	@$(MAKE) --no-print-directory all
	@bench/quick $(ARGS)

# In a minute: the form of all sources, and clang-tidy on the changed ones. lint-all: other compilers and tools on everything.
lint:
	@tools/setup build lint
	@$(MAKE) --no-print-directory all
	@tools/lint

lint-all:
	@tools/setup build lint
	@tools/lint --all

fuzz: sanitized
	@tools/fuzz $(ARGS)

soak:
	@tools/setup build check jdks
	@$(MAKE) --no-print-directory all
	@$(PYTEST) $(WHICH) -m soak -rP $(ARGS)

# A tarball that runs on any Linux of this architecture where it is unpacked, into build-dist/; for aarch64 with
# `make dist CROSS=aarch64`, into build-dist-aarch64/.
dist:
	@tools/setup build $(if $(CROSS),cross-$(CROSS))
	@tools/dist $(CROSS)

# A Debian package for this architecture, into build-deb/; for arm64 with `make deb CROSS=aarch64`, into build-deb-arm64/.
deb:
	@tools/setup build deb $(if $(CROSS),cross-$(CROSS) deb-arm64)
	@tools/deb $(if $(CROSS),arm64)

install: all
	@ninja -C $(BUILD) install

clean:
	rm -rf $(BUILD) build-*

.PHONY: dist deb all sanitized demo demo-fleet check check-arm check-all bench bench-quick lint lint-all fuzz soak install clean
