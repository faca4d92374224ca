#!/usr/bin/env bash
# Everything that `make test` does: installs what is missing, builds, runs every
# suite, then the unit and integration suites under ASan and UBSan, the ring
# under TSan, and the fuzzers for a short while. Ends with "N passed, N failed".
#
# SHP_JOBS   how many compilers at once (default: the cores)
# SHP_FUZZ_S seconds for each fuzzer (default 10)
set -uo pipefail
cd "$(dirname "$0")/../.."

jobs=${SHP_JOBS:-$(nproc)}
logs=()
broken=0

say() { printf '\n== %s\n' "$*"; }

# The programs of one suite, as targets of ninja.
targets() {
  meson introspect --tests "$1" | python3 -c '
import json, os, sys
root, suite = os.path.abspath(sys.argv[1]), "shp:" + sys.argv[2]
for test in json.load(sys.stdin):
    if suite in test["suite"] and test["cmd"][0].startswith(root):
        print(os.path.relpath(test["cmd"][0], root))' "$1" "$2"
}

# build DIRECTORY SUITE OPTION…: sets up and builds what SUITE runs ("all": all).
# A build that fails counts as one failed test and does not stop the rest.
build() {
  local directory=$1 suite=$2 wanted=()
  shift 2
  if [[ ! -f $directory/build.ninja ]]; then
    meson setup "$directory" "$@" >"$directory.setup.log" 2>&1 || {
      cat "$directory.setup.log"
      broken=$((broken + 1))
      return 1
    }
    mv "$directory.setup.log" "$directory/setup.log"
  fi
  [[ $suite == all ]] || mapfile -t wanted < <(targets "$directory" "$suite")
  ninja -C "$directory" -j "$jobs" --quiet "${wanted[@]}" || {
    broken=$((broken + 1))
    return 1
  }
}

suites() {
  local directory=$1
  shift
  rm -f "$directory"/meson-logs/testlog.json
  # No tests in a suite is no failure; the log says what ran.
  meson test -C "$directory" --no-rebuild --print-errorlogs "$@" || true
  logs+=("$directory/meson-logs/testlog.json")
}

say "packages"
tests/support/bootstrap.sh --tests || exit 1

say "build"
build build all --buildtype=release || {
  echo "0 passed, 1 failed"
  exit 1
}
if torch_python=$(tests/support/torch_python.sh); then
  export SHP_TEST_PYTHON=$torch_python
else
  echo "no Torch: the tests that need it will skip" >&2
fi
say "tests"
suites build

say "tests under ASan and UBSan"
if build build-asan all --buildtype=debugoptimized \
    -Db_sanitize=address,undefined -Db_lundef=false; then
  suites build-asan --suite unit --suite fuzz --suite integration \
    --timeout-multiplier 4
fi

say "ring under TSan"
if build build-tsan tsan --buildtype=debugoptimized -Db_sanitize=thread \
    -Db_lundef=false; then
  suites build-tsan --suite tsan --timeout-multiplier 10
fi

say "fuzzers"
if command -v clang++ >/dev/null &&
    echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long)
          { return 0; }' |
    clang++ -x c++ - -fsanitize=fuzzer -o /dev/null 2>/dev/null; then
  if CC=clang CXX=clang++ CXXFLAGS=-fsanitize=fuzzer-no-link \
      build build-fuzz fuzz --buildtype=debugoptimized -Dfuzz=true \
      -Db_sanitize=address,undefined -Db_lundef=false; then
    suites build-fuzz --suite fuzz
  fi
else
  echo "clang with libFuzzer is not here: the fuzzers ran over their seeds only"
fi

say "summary"
exec python3 tests/support/summary.py --also-failed "$broken" "${logs[@]}"
