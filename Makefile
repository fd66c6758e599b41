# SPDX-License-Identifier: Apache-2.0
# make demo    everything from a fresh clone to a private classification between two processes
# make test    all tests, C++ and Python
# make lint    formatting, layering and spelling
# make bench   throughput and bytes of the protocols
#                bench, faults, soak, prove and fuzz write to build/results; RESULTS=benchmarks/results updates the records of the site's tables
# make docs    the documentation as a site, build/site/index.html, with the pages made of settings, papers and results of benchmarks
# make wheel   dist/: the source distribution, and a wheel with the system libraries it needs, for any x86-64 processor
# make test-wheel   installs them in environments of their own and runs two parties outside the checkout (minutes)
# make faults   parties that are killed, cut off and starved of disk at every point of queries and training runs (hours, less with POINTS=5);
#                the table of the site's page on faults; in parts with ONLY="lanes or TLS", ONLY=training: the rest of the table stays
# make soak    10,000 queries through `privml serve` with clients coming and going (hours); QUERIES=500 for fewer, SOAK="engine=threepc"
#                for other settings, RESUME=1 goes on with a run that was interrupted; the table of the site's page on faults
# make prove   errors of the fixed-point functions over all inputs of 16 bits, against MPFR; quotients up to 12 bits (minutes)
# make prove-secfloat FUNCTION=log2   errors of a floating-point function over all 2^32 inputs (minutes); all without FUNCTION, and
#                the primitives against the hardware and rational numbers (a minute)
# make prove-noise   noise of ten million results of each form of lattice-based products, beside its bound (minutes)
# make prove-active   actively secure sessions against every alteration of every message (an hour); STEP=9 takes every ninth
# make sanitize   the C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer
# make sanitize-threads   the C++ tests of lanes under ThreadSanitizer
# make test-aarch64       the C++ tests for 64-bit Arm, by cross compiler and emulator
# make fuzz SECONDS=600 [TARGETS="frames onnx"]   everything that reads a peer's or a file's bytes, for so long each, JOBS at a time, under
#                AddressSanitizer and UndefinedBehaviorSanitizer (Clang with libFuzzer); RESUME=1 takes those that an interrupted run
#                has left; the table of the site's page on fuzzing
# make fuzz-smoke   the corpora through all targets, with any compiler (make test does it, too)
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
# nproc obeys OMP_NUM_THREADS, which here is the number of threads of one test.
RESULTS ?= build/results
JOBS ?= $(shell env -u OMP_NUM_THREADS nproc)
export OMP_NUM_THREADS ?= 1
# Without compiled modules on disk every process that tests start compiles all of them again.
unexport PYTHONDONTWRITEBYTECODE
# A compiler cache serves if it is installed (CMAKE_CXX_COMPILER_LAUNCHER= for none). Without one, common headers are compiled once.
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(shell command -v ccache)
PCH ?= $(if $(CMAKE_CXX_COMPILER_LAUNCHER),OFF,ON)
# What is only to be read when it fails: $(call quietly,WORDS FOR THE STAGE,LOG FILE,COMMAND)
quietly = @mkdir -p $(dir $(2)); start=$$SECONDS; $(3) > $(2) 2>&1 || { cat $(2) >&2; exit 1; }; \
  printf '%-36s %4d s\n' '$(1)' $$((SECONDS - start))

.PHONY: all setup configure build build-tests demo test test-cpp test-python lint format sanitize sanitize-threads test-aarch64 prove prove-secfloat prove-noise prove-active bench docs faults soak wheel test-wheel clean fuzz fuzz-build fuzz-smoke

all: build

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" TORCH="$(TORCH)" bash scripts/setup.sh

configure: setup
	$(call quietly,build configured,build/configure.log,$(BIN)/cmake -S csrc -B build/release -G Ninja \
	  -DCMAKE_BUILD_TYPE=Release -DPRIVML_TESTS=ON -DPRIVML_PCH=$(PCH) \
	  -DCMAKE_MAKE_PROGRAM="$(abspath $(BIN))/ninja" -DPython_EXECUTABLE="$(abspath $(BIN))/python" \
	  -Dpybind11_DIR="$$($(BIN)/python -m pybind11 --cmakedir)")

# The extension alone; the tests and proofs of the C++ core are built where they run. Ninja shows on a terminal how far it is.
build: configure
	@start=$$SECONDS; if [ -t 1 ]; then $(BIN)/cmake --build build/release -j $(JOBS) --target _core; \
	  else $(BIN)/cmake --build build/release -j $(JOBS) --target _core > build/build.log || { cat build/build.log; exit 1; }; fi; \
	  printf '%-36s %4d s\n' 'extension compiled' $$((SECONDS - start))
	@cp --remove-destination build/release/_core*.so privml/
	@$(BIN)/python scripts/make_stubs.py

build-tests: build
	$(BIN)/cmake --build build/release -j $(JOBS)

demo: build
	@$(BIN)/python scripts/demo.py

test: test-cpp test-python

test-cpp: build-tests
	cd build/release && $(abspath $(BIN))/ctest --output-on-failure -j $(JOBS)

# One process per core, each with its own part of the list, the rest of another's when it is done.
test-python: build
	$(BIN)/python -m pytest -m "not slow and not gpu" -n $(JOBS) --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $$(git ls-files 'csrc/*.h' 'csrc/*.cpp')
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/codespell $$(git ls-files)

format: setup
	$(BIN)/ruff check --fix -q . || true
	$(BIN)/ruff format -q .
	$(BIN)/clang-format -i $$(git ls-files 'csrc/*.h' 'csrc/*.cpp')

# Line numbers are all that reports of sanitizers need, and at -O1 they compile in half the time; warnings are errors in the other
# build. Tests that only compare values are left out (csrc/values_only.txt).
sanitize: setup
	$(BIN)/cmake -S csrc -B build/sanitize -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPRIVML_TESTS=ON \
	  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DPRIVML_WERROR=OFF \
	  -DPRIVML_SANITIZE=ON -DPRIVML_BINDINGS=OFF -DPRIVML_PCH=$(PCH) -DCMAKE_MAKE_PROGRAM="$(abspath $(BIN))/ninja"
	$(BIN)/cmake --build build/sanitize -j $(JOBS)
	cd build/sanitize && $(abspath $(BIN))/ctest --output-on-failure -j $(JOBS) \
	  -E "^($$(grep -v '^#' $(abspath csrc/values_only.txt) | paste -sd '|'))$$"

prove: build
	$(BIN)/python scripts/make_tables.py --check
	$(BIN)/python scripts/prove_functions.py --out $(RESULTS)/fixed-point-errors.md
	$(BIN)/python scripts/prove_real_numbers.py --out $(RESULTS)/real-number-errors.md

prove-secfloat: build
	$(BIN)/cmake --build build/release --target prove_functions prove_primitives
	$(BIN)/python scripts/make_float_tables.py --check
	$(if $(FUNCTION),,build/release/prove_primitives)
	$(BIN)/python scripts/prove_secfloat.py $(FUNCTION) --threads $(JOBS) --out $(RESULTS)/secfloat-errors.jsonl

prove-noise: build
	$(BIN)/cmake --build build/release --target prove_noise
	build/release/prove_noise

prove-active: build
	$(BIN)/cmake --build build/release --target prove_adversary
	build/release/prove_adversary $(STEP)

sanitize-threads: setup
	$(BIN)/cmake -S csrc -B build/sanitize-threads -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPRIVML_TESTS=ON \
	  -DPRIVML_SANITIZE=thread -DPRIVML_BINDINGS=OFF -DCMAKE_MAKE_PROGRAM="$(abspath $(BIN))/ninja"
	$(BIN)/cmake --build build/sanitize-threads -j $(JOBS) --target twopc_tests ot_tests lattice_tests
	cd build/sanitize-threads && $(abspath $(BIN))/ctest --output-on-failure -j $(JOBS) -R 'Lane|Refill|ProductDivision|SeveralThreads'

# C++ for 64-bit Arm, its tests run by QEMU. LIMIT=-R Pattern limits which.
test-aarch64: setup
	@command -v aarch64-linux-gnu-g++ qemu-aarch64 > /dev/null || { echo "make test-aarch64 needs (Debian): dpkg --add-architecture arm64;" \
	  "apt-get install g++-aarch64-linux-gnu qemu-user libstdc++6:arm64 libsodium-dev:arm64 libssl-dev:arm64 libgtest-dev:arm64"; exit 1; }
	$(BIN)/cmake -S csrc -B build/aarch64 -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$(abspath csrc/aarch64.cmake)" \
	  -DPRIVML_BINDINGS=OFF -DCMAKE_MAKE_PROGRAM="$(abspath $(BIN))/ninja"
	$(BIN)/cmake --build build/aarch64 -j $(JOBS)
	cd build/aarch64 && $(abspath $(BIN))/ctest --output-on-failure -j $(JOBS) $(LIMIT)

CLANG ?= $(firstword $(foreach name,clang++-19 clang++-16 clang++,$(shell command -v $(name))))
SECONDS ?= 600

fuzz-build: setup
	@[ -n "$(CLANG)" ] || { echo "make fuzz needs Clang with libFuzzer: apt-get install clang-16 libclang-rt-16-dev"; exit 1; }
	$(BIN)/cmake -S csrc -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER="$(CLANG)" \
	  -DPRIVML_FUZZ=ON -DPRIVML_SANITIZE=ON -DPRIVML_TESTS=OFF -DPRIVML_BINDINGS=OFF -DPRIVML_WERROR=OFF \
	  -DCMAKE_MAKE_PROGRAM="$(abspath $(BIN))/ninja"
	$(BIN)/cmake --build build/fuzz -j $(JOBS)

fuzz: fuzz-build build
	$(BIN)/python scripts/fuzz.py $(SECONDS) $(if $(RESUME),resume,) results=$(RESULTS) $(TARGETS)

fuzz-smoke: build-tests
	build/release/fuzz_tests
	$(BIN)/python -m pytest tests/fuzz

bench: build
	$(BIN)/privml bench suite=ot link=loopback results=$(RESULTS)
	$(BIN)/privml bench suite=twopc link=loopback results=$(RESULTS)

# Links that lose packets and full disks are made by root alone; others skip those tests.
faults: build
	PRIVML_FAULTS=$(RESULTS) PRIVML_FAULTS_POINTS=$(or $(POINTS),20) \
	  $(BIN)/python -m pytest -m "not gpu" -p no:cacheprovider $(if $(ONLY),-k "$(ONLY)",) tests/faults

soak: build
	$(BIN)/python scripts/soak.py queries=$(or $(QUERIES),10000) resume=$(if $(RESUME),true,false) out=$(RESULTS) $(SOAK)

docs: build
	$(BIN)/python scripts/requirements.py docs | $(BIN)/pip install -q -r /dev/stdin
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -q
	$(BIN)/python scripts/check_site.py build/site

wheel: setup
	rm -rf dist build/python
	$(BIN)/python -m build --no-isolation --outdir dist
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m auditwheel repair --wheel-dir dist dist/*-linux_*.whl
	rm dist/*-linux_*.whl

test-wheel: build
	$(BIN)/python -m pytest -m slow tests/packaging

clean:
	rm -rf build dist privml/_core*.so
