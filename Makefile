# Thin: everything is CMake. Two targets do all a newcomer needs; both install what is missing when they may.
#   make quickstart   builds, makes a tiny model, trains it by reinforcement learning, prints before and after (about 3 minutes)
#   make test         builds and passes the tests
# make alone builds everything, the CUDA backend (make cuda) too where nvcc is; the two above do not wait for it.
BUILD ?= build
JOBS  ?= $(shell nproc)
ARGS  ?=

.PHONY: all build cuda quickstart test bench clean
all: build cuda

build:
	@sh tools/needs.sh build
	@cmake -S . -B $(BUILD) -DBUILD_TESTING=OFF > $(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@cmake --build $(BUILD) -j $(JOBS)

NVCC ?= $(firstword $(shell command -v nvcc) $(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc))
cuda:
ifeq ($(NVCC),)
	@echo "nvcc is not there: the CUDA backend is left out (run.device = cpu needs none)"
else
	@mkdir -p $(BUILD)
	@cmake -S kernels/cuda -B $(BUILD)/cuda -DNVCC=$(NVCC) -DTARE_CUDA_OUT=$(abspath $(BUILD)) > $(BUILD)/cuda.log 2>&1 || { cat $(BUILD)/cuda.log; exit 1; }
	@cmake --build $(BUILD)/cuda -j $(JOBS)
endif

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
