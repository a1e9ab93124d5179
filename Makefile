# Every goal installs what it needs: `make demo` and `make test` work on a fresh Debian machine that has
# make and a C++ compiler.
.DEFAULT_GOAL := help
.PHONY: help setup build test test-long test-torch test-jax test-keras test-cudnn-layout demo bench bench-peers \
  conformance gpu-bundle gpu-check wheels docs check sanitize fuzz clean

help:  ## show this list
	@echo 'OpenRNN. Goals:'
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | \
	  while IFS='|' read -r goal text; do printf '%-18s %s\n' "$$goal" "$$text"; done

setup:  ## install what build, demo and test need (apt, and pip into .venv)
	@scripts/setup build python demo test

build:  ## build the library, the tool build/release/openrnn, and the Python package in .venv
	@scripts/setup build python
	@scripts/build release openrnn_tool openrnn_python_stub
	@scripts/install_python

test:  ## build everything and run all tests, C++ and Python
	@scripts/setup build python demo test
	@scripts/build release all
	@scripts/install_python
	@scripts/test

test-long:  ## C++ tests under every instruction set, Python tests over whole grids, below an hour on 2 cores
	@scripts/setup build python demo test
	@scripts/build release all
	@scripts/install_python
	@scripts/test_long
	@OPENRNN_GRIDS=whole scripts/test_python

test-torch:  ## compare with PyTorch, newest and oldest, 10 GB; not part of test (ONLY=new, ONLY=old)
	@scripts/setup build python test
	@scripts/build release openrnn_testapi openrnn_gpu_bench openrnn_tool tool_model_file openrnn_python_stub
	@ONLY='$(ONLY)' scripts/test_torch

test-jax:  ## compare with JAX, newest and oldest, 2 GB; not part of test (ONLY=new, ONLY=old)
	@scripts/setup build python
	@scripts/build release openrnn_python_stub
	@ONLY='$(ONLY)' scripts/test_jax

test-keras:  ## compare with Keras under each of its backends, 7 GB; not part of test (ONLY=torch, ..)
	@scripts/setup build python
	@scripts/build release openrnn_python_stub
	@ONLY='$(ONLY)' scripts/test_keras

test-cudnn-layout:  ## compare the layout of weights with cuDNN's own, no GPU, 520 MB; not part of test
	@scripts/setup build python
	@scripts/build release tool_params_layout
	@scripts/test_cudnn_layout

demo:  ## train on a real text, save, restore, compare, sample (FRESH=1 trains again)
	@scripts/setup build demo
	@scripts/build release openrnn_tool
	@FRESH=$(FRESH) scripts/demo

bench:  ## measure the recurrent layers against this machine's own peak (KEEP=NAME keeps the figures)
	@scripts/setup build
	@scripts/build release openrnn_tool
	@KEEP='$(KEEP)' scripts/bench

bench-peers:  ## measure against other libraries in .venv-peers, 8 GB (ONLY=REGEX FULL=1 FRESH=1 ARGS=)
	@scripts/setup build python
	@scripts/build release openrnn_core openrnn_python_stub
	@ONLY='$(ONLY)' FULL='$(FULL)' FRESH='$(FRESH)' scripts/bench_peers $(ARGS)

conformance:  ## run ONNX's recurrent operators on other runtimes, in .venv-conformance (docs/conformance.md)
	@scripts/setup build python test
	@scripts/build release openrnn_python_stub
	@scripts/install_python
	@scripts/conformance $(ARGS)

gpu-bundle:  ## build the tests of the GPU engine for another machine (DIR=build/gpu_bundle)
	@scripts/setup build
	@scripts/gpu_bundle '$(or $(DIR),build/gpu_bundle)'

gpu-check:  ## test the GPU engine on this machine (docs/gpu.md)
	@scripts/setup build
	@scripts/gpu_check

wheels:  ## make wheels of the Python package for older Linux, x86-64 and aarch64, in build/wheels (ARCH=)
	@scripts/setup build python
	@scripts/build release openrnn_python_stub
	@scripts/wheels $(ARCH)

docs:  ## render the references of C++ and Python to build/docs/api
	@scripts/setup docs
	@scripts/docs

check:  ## the word list, clang-format, clang-tidy and types (.venv-types), warnings are errors
	@scripts/setup build check
	@scripts/build lint configure
	@scripts/check

sanitize:  ## C++ tests and fuzz corpora under asan + ubsan, then tsan
	@scripts/setup build demo
	@scripts/sanitize

fuzz:  ## fuzz every reader of files ten minutes each (SECONDS=600 JOBS=1 TARGETS=), fails on a finding
	@scripts/setup build fuzz
	@FUZZ_SECONDS='$(or $(SECONDS),600)' FUZZ_JOBS='$(or $(JOBS),1)' scripts/fuzz $(TARGETS)

clean:  ## remove the builds (the .venv folders and demo/ stay)
	@rm -rf build
