#!/usr/bin/env bash
# Installs the Debian packages that building and testing shp needs, on Debian 12
# and 13. Asks apt for nothing when they are all there. Needs root or sudo only
# for what is missing.
#
#   bootstrap.sh          what a build needs
#   bootstrap.sh --tests  also what the tests use; those that apt does not have
#                         are said and done without: their tests skip
set -euo pipefail

build_packages=(
  g++ meson ninja-build pkgconf make
  libboost-dev libspdlog-dev libfmt-dev rapidjson-dev libexpected-dev
  libcli11-dev zlib1g-dev libsqlite3-dev libdeflate-dev
  python3 python3-dev python3-venv
)
required_for_tests=(doctest-dev git binutils gcc procps)
wanted_for_tests=(clang-format clang libclang-rt-dev lttng-tools
  liblttng-ust-dev)

missing() {
  local package
  for package in "$@"; do
    if [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" \
        != installed ]]; then
      printf '%s\n' "$package"
    fi
  done
}

as_root() {
  if [[ "$(id -u)" == 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "$@" </dev/null >/dev/null
}

may_install() {
  if ! command -v apt-get >/dev/null; then
    echo "bootstrap: no apt-get here; please install what corresponds to: $*" >&2
    return 1
  fi
  if [[ "$(id -u)" != 0 ]] && ! command -v sudo >/dev/null; then
    echo "bootstrap: neither root nor sudo; as root: apt-get install $*" >&2
    return 1
  fi
}

required=("${build_packages[@]}")
wanted=()
if [[ "${1:-}" == --tests ]]; then
  required+=("${required_for_tests[@]}")
  wanted=("${wanted_for_tests[@]}")
fi

# A system without dpkg may have everything all the same: let Meson judge.
command -v dpkg-query >/dev/null || exit 0

# Package names hold no spaces; a bare chroot has no /dev/fd for mapfile.
read -r -d '' -a absent <<<"$(missing "${required[@]}")" || true
read -r -d '' -a absent_wanted <<<"$(missing "${wanted[@]}")" || true
if ((${#absent[@]} + ${#absent_wanted[@]} == 0)); then
  exit 0
fi
if ! may_install "${absent[@]}" "${absent_wanted[@]}"; then
  ((${#absent[@]} == 0))
  exit
fi

echo "bootstrap: installing ${absent[*]} ${absent_wanted[*]}"
as_root apt-get update -qq </dev/null >/dev/null
if ((${#absent[@]} > 0)); then
  apt_install "${absent[@]}"
fi
# One by one: a package that this release does not have must not cost the rest.
for package in "${absent_wanted[@]}"; do
  apt_install "$package" || echo "bootstrap: going on without $package" >&2
done
