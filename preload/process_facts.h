// What a session's metadata says of the process that it records. Control path.
#pragma once

#include <cstdint>
#include <string>

namespace shp::recorder {

std::string own_hostname();

// The command line, each argument ended by NUL, cut after 4096 bytes at the
// end of an argument or, for a longer first one, inside it.
std::string own_argv();

// Inode of the pid namespace; 0 where /proc does not tell.
uint64_t own_pid_namespace();

}  // namespace shp::recorder
