#!/bin/sh
# Makes the Debian tree that tests/integration/systemd_test.py boots: a minute or
# more, 300 MiB, as root.
#   sh tests/support/systemd_tree.sh [DIRECTORY]
set -eu
tree=${1:-/var/tmp/shp-systemd-tree}
. /etc/os-release
suite=${VERSION_CODENAME:-bookworm}
packages=systemd,systemd-sysv
for library in $(apt-cache depends --installed libfmt-dev libspdlog-dev |
    sed -n 's/.*Depends: *\(lib\(fmt\|spdlog\)[0-9][0-9.]*\)$/\1/p' | sort -u); do
  packages=$packages,$library
done
exec debootstrap --variant=minbase --include="$packages" "$suite" "$tree"
