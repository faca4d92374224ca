#!/usr/bin/env bash
# Everything that `make test` does: installs what is missing, builds, runs every
# suite, then units and fuzzers' seeds under ASan and UBSan, the ring under TSan,
# and the fuzzers for a short while. Ends with "N passed, N failed".
#
# SHP_FUZZ_S  seconds for each fuzzer (default 10)
# SHP_FUZZERS which of them search with libFuzzer (default: all)
# SHP_SUITES  which of "plain asan asan-all tsan fuzz" to run (default: all but
#             asan-all, which is every suite under ASan and UBSan)
set -uo pipefail
cd "$(dirname "$0")/../.."

logs=()
broken=0
wanted=" ${SHP_SUITES:-plain asan tsan fuzz} "

say() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; }

# set_up DIRECTORY MESON-OPTIONS...: one that fails counts as one failed test.
set_up() {
  local directory=$1
  shift
  [[ -f $directory/build.ninja ]] && return
  local log
  log=$(meson setup "$directory" "$@" 2>&1) && return
  printf '%s\n' "$log"
  broken=$((broken + 1))
  return 1
}

# suites DIRECTORY MESON-TEST-OPTIONS...: builds what these tests need and runs
# them. Without a log it did not come to running them. A few that fail are run
# once more with nothing beside them; the summary names what is unsteady.
suites() {
  local directory=$1 failing=()
  local log=$directory/meson-logs/testlog.json
  local first=$directory/meson-logs/first.json
  shift
  rm -f "$log" "$first"
  if meson test -C "$directory" --print-errorlogs "$@"; then
    logs+=("$log")
    return
  fi
  if [[ ! -f $log ]]; then
    broken=$((broken + 1))
    return
  fi
  mapfile -t failing < <(python3 tests/support/summary.py --failing "$log")
  if ((${#failing[@]} == 0 || ${#failing[@]} > 6)); then
    logs+=("$log")
    return
  fi
  mv "$log" "$first"
  say "alone: ${failing[*]}"
  meson test -C "$directory" --print-errorlogs --num-processes 1 \
    --no-rebuild --timeout-multiplier 4 "${failing[@]}"
  logs+=("$first+$log")
}

plain() {
  say "build"
  set_up build --buildtype=release || return
  ninja -C build --quiet || { broken=$((broken + 1)); return; }
  say "tests"
  suites build
}

set_up_asan() {
  set_up build-asan --buildtype=debug -Doptimization=1 \
    -Db_sanitize=address,undefined -Db_lundef=false
}

asan() {
  say "units and fuzzers' seeds under ASan and UBSan"
  set_up_asan &&
    suites build-asan --suite unit --suite fuzz --timeout-multiplier 4
}

# Not among the usual ones: with the build it takes some twenty minutes on two
# cores.
asan-all() {
  say "everything under ASan and UBSan"
  set_up_asan && suites build-asan --suite unit --suite fuzz \
    --suite integration --timeout-multiplier 4
}

tsan() {
  say "the ring under TSan"
  set_up build-tsan --buildtype=debug -Doptimization=1 -Db_sanitize=thread \
    -Db_lundef=false && suites build-tsan --suite tsan --timeout-multiplier 10
}

has_libfuzzer() {
  command -v clang++ >/dev/null &&
    echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long)
          { return 0; }' |
    clang++ -x c++ - -fsanitize=fuzzer -o /dev/null 2>/dev/null
}

fuzz() {
  say "fuzzers"
  if ! has_libfuzzer; then
    echo "clang with libFuzzer is not here: the fuzzers ran over seeds only"
    return
  fi
  CC=clang CXX=clang++ CXXFLAGS=-fsanitize=fuzzer-no-link \
    set_up build-fuzz --buildtype=debug -Doptimization=1 -Dfuzz=true \
    -Db_sanitize=address,undefined -Db_lundef=false &&
    suites build-fuzz --suite fuzz ${SHP_FUZZERS-}
}

say "packages"
tests/support/bootstrap.sh --tests || exit 1

mkdir -p build
if torch_python=$(tests/support/torch_python.sh); then
  export SHP_TEST_PYTHON=$torch_python
else
  echo "no Torch: the tests that need it will skip" >&2
fi
for part in plain asan asan-all tsan fuzz; do
  if [[ $wanted == *" $part "* ]]; then
    "$part"
  fi
done

say "summary"
exec python3 tests/support/summary.py --also-failed "$broken" "${logs[@]}"
