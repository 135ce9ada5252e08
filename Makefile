# A thin wrapper for CMake. Two targets do all that a newcomer needs; both install missing packages if allowed.
#   make quickstart   builds, makes a tiny model, trains it by reinforcement learning, prints the reward
#                     before and after (about 3 minutes)
#   make quickstart-agent   the same for episodes of several turns: guess a number (about 1 minute)
#   make test         builds and runs the tests; the last lines count cases that ran, failed and were
#                     skipped, with reasons
#   make test-all     also runs every script of tests/e2e, an hour on two cores (docs/dev/testing.md)
#   make install      installs the build into PREFIX (/usr/local), under DESTDIR; make uninstall removes it.
#                     LIBDIR=lib64 must be given to make
#   make deb          makes a Debian package in $(BUILD)-deb
#   make release      makes the files of a release in $(BUILD)-release, from the commit HEAD
#                     (docs/dev/releasing.md)
#   make docs         builds the documentation site in build-docs/site (mkdocs-material from PyPI, in a
#                     virtual environment)
# make alone builds everything, including the CUDA backend (make cuda) if nvcc is installed; quickstart
# and test do not build that.
SHELL := /bin/bash
BUILD ?= build
JOBS  ?= $(shell nproc)
# concurrent tests; each uses several threads
TEST_JOBS ?= $(shell n=$$(nproc); [ $$n -gt 4 ] && echo 4 || echo $$n)
ARGS  ?=

PREFIX ?= /usr/local
LIBDIR ?=

# prints one line per target
BUILD_QUIETLY = MAKEFLAGS=--no-print-directory cmake --build $(BUILD) -j $(JOBS) | grep -vE '^\[.*(Building|Linking)|^Consolidate|^Scanning'; exit $${PIPESTATUS[0]}

.PHONY: all build cuda docs quickstart quickstart-agent test test-all bench bench-report install uninstall deb release clean
all: build cuda

build:
	@sh tools/needs.sh build
	@cmake -S . -B $(BUILD) -DBUILD_TESTING=OFF -DTARE_COMPLETE=ON $(if $(LIBDIR),-DCMAKE_INSTALL_LIBDIR=$(LIBDIR)) > $(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@$(BUILD_QUIETLY)

NVCC ?= $(firstword $(shell command -v nvcc) $(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc))
cuda:
ifeq ($(NVCC),)
	@echo "nvcc not found: skipping the CUDA backend (run.device = cpu does not need it)"
else
	@mkdir -p $(BUILD)
	@cmake -S kernels/cuda -B $(BUILD)/cuda -DNVCC=$(NVCC) -DTARE_CUDA_OUT=$(abspath $(BUILD)) > $(BUILD)/cuda.log 2>&1 || { cat $(BUILD)/cuda.log; exit 1; }
	@cmake --build $(BUILD)/cuda -j $(JOBS)
endif

quickstart: build
	$(BUILD)/tare train configs/quickstart.ini $(ARGS)

quickstart-agent: build
	@sh tools/agent.sh $(BUILD)/tare $(ARGS)

test: TESTS = -LE deep
test test-all:
	@sh tools/needs.sh test
	@cmake -S . -B $(BUILD) -DBUILD_TESTING=ON -DTARE_WERROR=ON -DTARE_COMPLETE=ON > $(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@$(BUILD_QUIETLY)
	@cd $(BUILD) && { ctest $(TESTS) -j $(TEST_JOBS) --output-on-failure --output-junit results.xml; status=$$?; \
	    bash $(CURDIR)/tests/summary.sh results.xml || exit 1; exit $$status; }

# PEERS: a Python with torch, transformers, trl (see bench/peers/run.py); MODEL: a SmolLM2 folder;
# TINY: a tiny model's folder
bench: build
	$(BUILD)/tare bench
	$(if $(PEERS),$(PEERS) bench/peers/run.py --peers $(PEERS) --tare $(BUILD)/tare $(if $(MODEL),--model $(MODEL)) $(if $(TINY),--tiny $(TINY)))

# Makes every table of docs/dev/performance.md, with date, machine and commit: MODEL, PEERS, and in ARGS
# other options of bench/report.py
bench-report: build
	bench/report.py --tare $(BUILD)/tare $(if $(MODEL),--model $(MODEL)) $(if $(PEERS),--peers $(PEERS)) $(if $(TINY),--tiny $(TINY)) $(ARGS)

# only builds if the program is missing, so that `sudo make install` compiles nothing as root
$(BUILD)/tare:
	@$(MAKE) build

install: $(BUILD)/tare
	@prefix=$$(realpath -m "$(PREFIX)") && DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$$prefix" > /dev/null && \
	    echo "installed: $(DESTDIR)$$prefix/bin/tare"

uninstall:
	@cmake -DPREFIX="$(DESTDIR)$$(realpath -m "$(PREFIX)")" -P packaging/uninstall.cmake

docs:
	@sh tools/site.sh

deb:
	@sh tools/needs.sh deb
	cmake -S . -B $(BUILD)-deb -DBUILD_TESTING=OFF -DTARE_COMPLETE=ON -DCMAKE_INSTALL_PREFIX=/usr > $(BUILD)-deb.log || { cat $(BUILD)-deb.log; exit 1; }
	@rm -f $(BUILD)-deb.log
	cmake --build $(BUILD)-deb -j $(JOBS)
	cd $(BUILD)-deb && cpack -G DEB

release:
	@sh tools/needs.sh test
	@JOBS=$(JOBS) bash packaging/release.sh $(BUILD)-release

clean:
	rm -rf $(BUILD)
