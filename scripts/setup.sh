#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes $VENV with everything privml needs: system libraries (through apt where permitted) and Python packages.
# Prints a line with its seconds for each stage; what pip and apt say is shown if they fail.
set -euo pipefail
PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
TORCH=${TORCH:-torch==2.13.0}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# stage WORDS COMMAND...
stage() {
  local words=$1 start=$SECONDS
  shift
  "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    echo "failed: $words" >&2
    exit 1
  }
  printf '%-36s %4d s\n' "$words" $((SECONDS - start))
}

install() { "$VENV/bin/pip" install --disable-pip-version-check --root-user-action=ignore "$@"; }

missing=()
command -v g++ >/dev/null || missing+=(g++)
command -v make >/dev/null || missing+=(make)
[ -e /usr/include/sodium.h ] || [ -e /usr/local/include/sodium.h ] || missing+=(libsodium-dev)
[ -e /usr/include/openssl/ssl.h ] || [ -e /usr/local/include/openssl/ssl.h ] || missing+=(libssl-dev)
[ -e /usr/include/gtest/gtest.h ] || [ -e /usr/local/include/gtest/gtest.h ] || missing+=(libgtest-dev)
"$PYTHON" -c 'import venv, ensurepip, sysconfig, os, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' \
  2>/dev/null || missing+=(python3-venv python3-dev)
if [ ${#missing[@]} -gt 0 ]; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    system_packages() { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "${missing[@]}"; }
    stage "system packages: ${missing[*]}" system_packages
  else
    echo "privml needs these system packages; please run:  sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi

[ -x "$VENV/bin/python" ] || stage "environment $VENV" "$PYTHON" -m venv "$VENV"
stage "pip" install --upgrade pip
echo "Python packages are downloaded: some minutes the first time"
stage "$TORCH" install "$TORCH"
stage "build tools" install "scikit-build-core>=0.10" "setuptools>=69" wheel "pybind11>=2.12" ninja "cmake>=3.24"
"$VENV/bin/python" scripts/requirements.py >"$VENV/requirements.txt"
stage "all other packages" install -r "$VENV/requirements.txt"
echo "$PWD" > "$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/privml-checkout.pth"
cat > "$VENV/bin/privml" <<SCRIPT
#!$(cd "$VENV/bin" && pwd)/python
from privml.cli import main

main()
SCRIPT
chmod +x "$VENV/bin/privml"
touch "$VENV/.ready"
