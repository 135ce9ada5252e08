# Thin: everything is CMake. Two targets do all a newcomer needs; both install what is missing when they may.
#   make quickstart   builds, makes a tiny model, trains it by reinforcement learning, prints before and after (about 3 minutes)
#   make test         builds and passes the tests
BUILD ?= build
JOBS  ?= $(shell nproc)
ARGS  ?=

.PHONY: all build quickstart test bench clean
all: build

build:
	@sh tools/needs.sh build
	@cmake -S . -B $(BUILD) -DBUILD_TESTING=OFF > $(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@cmake --build $(BUILD) -j $(JOBS)

quickstart: build
	$(BUILD)/tare train configs/quickstart.ini $(ARGS)

test:
	@sh tools/needs.sh test
	cmake -S . -B $(BUILD) -DBUILD_TESTING=ON -DTARE_WERROR=ON
	cmake --build $(BUILD) -j $(JOBS)
	cd $(BUILD) && ctest --output-on-failure

# PEERS: a Python with torch, transformers, trl (bench/peers/run.py says what for); MODEL: a SmolLM2 folder; TINY: a tiny model's folder
bench: build
	$(BUILD)/tare bench
	$(if $(PEERS),$(PEERS) bench/peers/run.py --peers $(PEERS) --tare $(BUILD)/tare $(if $(MODEL),--model $(MODEL)) $(if $(TINY),--tiny $(TINY)))

clean:
	rm -rf $(BUILD)
