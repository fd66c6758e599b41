#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds privml on a machine with a CUDA device and runs tests/gpu there; nothing is fetched.
#
#   scripts/gpu_check.sh collect carried   on a connected machine: what a bare one lacks (libsodium, pure Python packages)
#   scripts/gpu_check.sh carried           on the device: build, tests/gpu, benchmarks/gemm.py
#
# The device needs g++, CMake, Ninja and a python3 with torch (CUDA), numpy, safetensors, pybind11 and pytest. It may be
# of another Python version than the connected machine, of the same processor and at least as new a C library.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}

if [ "${1:-}" = collect ]; then
  carried=${2:?name a folder to collect into}
  mkdir -p "$carried"
  (cd "$carried" && apt-get download -q libsodium-dev libsodium23)
  "$PYTHON" -m pip wheel -q --no-deps -w "$carried" hydra-core omegaconf antlr4-python3-runtime==4.9.3 rich \
    markdown-it-py mdurl pygments pytest-timeout
  ls -l "$carried"
  exit
fi

carried=$(cd "${1:-carried}" && pwd)
work=${WORK:-$PWD/build/gpu}
mkdir -p "$work/site"
"$PYTHON" -c 'import torch; assert torch.cuda.is_available(), "no CUDA device"; print(torch.__version__, torch.cuda.get_device_name())'
if ls "$carried"/*.whl >/dev/null 2>&1; then
  "$PYTHON" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$work/site" "$carried"/*.whl
fi
for package in "$carried"/*.deb; do
  [ -e "$package" ] && dpkg -x "$package" "$work/system"
done
# Packages of the machine itself come first, the carried ones fill gaps.
PYTHONPATH=$PWD:$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'):$work/site
export PYTHONPATH

library=$(find "$work/system" -name libsodium.so 2>/dev/null | head -1)
header=$(find "$work/system" -name sodium.h 2>/dev/null | head -1)
[ -z "$library" ] || export LD_LIBRARY_PATH=$(dirname "$library")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
cmake -S csrc -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPRIVML_TESTS=OFF \
  -DPython_EXECUTABLE="$(command -v "$PYTHON")" -Dpybind11_DIR="$("$PYTHON" -m pybind11 --cmakedir)" \
  ${library:+-DSODIUM_LIBRARY="$library"} ${header:+-DSODIUM_INCLUDE="$(dirname "$header")"} >"$work/cmake.log"
cmake --build "$work/build" --target _core -j "$(nproc)" | tail -2
cp --remove-destination "$work"/build/_core*.so privml/
"$PYTHON" -m pytest -q -p no:cacheprovider -m gpu tests/gpu
"$PYTHON" benchmarks/gemm.py --device cuda
