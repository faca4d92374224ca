#!/usr/bin/env bash
# `make demo`: from a fresh machine to host spans in a Torch trace. Installs what
# is missing, builds, runs demo/serve.py under `shp run` with torch.profiler on,
# and merges. Nothing needs to run or be configured; root (or sudo) only where
# packages are missing. Everything stays under build/.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }
shown() { printf '$ %s\n' "$*" && "$@"; }

say "packages"
tests/support/bootstrap.sh

say "build"
[[ -f build/build.ninja ]] || meson setup build >build-setup.log ||
  { cat build-setup.log; exit 1; }
rm -f build-setup.log
ninja -C build --quiet cli/shp daemon/shpd preload/libshp.so

say "a Python with Torch"
python=$(tests/support/torch_python.sh)
echo "$python"

say "record"
out=build/demo
rm -rf "$out"
mkdir -p "$out"
shown build/cli/shp run -o "$out/host" -- "$python" demo/serve.py "$out/torch"

say "merge"
shown build/cli/shp merge-dir "$out/host" --torch-dir "$out/torch"

say "look"
echo "The merged trace: $(ls "$out"/torch/*.json.gz)"
echo "Open it: https://ui.perfetto.dev, then \"Open trace file\"; the rows of"
echo "host spans stand under the process, beside Torch's own."
