#!/usr/bin/env bash
# Prints the path of a Python that has Torch: $SHP_TEST_PYTHON when set, else
# python3 when it has Torch, else a virtual environment at build/venv, made now
# when it is not there. Everything but the path goes to stderr.
set -euo pipefail
cd "$(dirname "$0")/../.."

has_torch() {
  "$1" -c 'import torch.profiler' >/dev/null 2>&1
}

for candidate in ${SHP_TEST_PYTHON:+"$SHP_TEST_PYTHON"} python3 \
    "$PWD/build/venv/bin/python"; do
  if command -v "$candidate" >/dev/null && has_torch "$candidate"; then
    command -v "$candidate"
    exit 0
  fi
done

echo "torch_python: no Torch here yet: installing torch==2.13.0 into" \
  "build/venv (a few minutes)" >&2
python3 -m venv build/venv >&2
build/venv/bin/pip install --quiet torch==2.13.0 numpy </dev/null >&2
has_torch build/venv/bin/python
echo "$PWD/build/venv/bin/python"
