#include "cli/run/preloadable.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

namespace shp {
namespace {

constexpr int kMaxInterpreters = 4;  // the kernel follows as many

std::string along_path(const std::string& command,
                       std::string_view search_path) {
  if (command.find('/') != std::string::npos) {
    return command;
  }
  while (!search_path.empty()) {
    const size_t end = std::min(search_path.find(':'), search_path.size());
    const std::string folder(end > 0 ? search_path.substr(0, end) : ".");
    const std::string path = folder + "/" + command;
    if (access(path.c_str(), X_OK) == 0) {
      return path;
    }
    search_path.remove_prefix(std::min(end + 1, search_path.size()));
  }
  return command;
}

std::string first_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(65536, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(in.gcount()));
  return bytes;
}

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> result;
  while (!line.empty()) {
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    if (end > 0) {
      result.emplace_back(line.substr(0, end));
    }
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return result;
}

// "#!/usr/bin/env python3" names what env will look for.
std::string interpreter_of(std::string_view script) {
  script.remove_prefix(2);
  const auto parts = words(script.substr(0, script.find('\n')));
  if (parts.empty()) {
    return "";
  }
  const bool by_env = parts[0].ends_with("/env");
  for (size_t i = 1; by_env && i < parts.size(); ++i) {
    if (parts[i][0] != '-' && parts[i].find('=') == std::string::npos) {
      return parts[i];
    }
  }
  return parts[0];
}

template <typename T>
bool copy_at(std::string_view bytes, uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
    return false;
  }
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

std::string why_not_elf(std::string_view bytes) {
  Elf64_Ehdr header;
  if (!copy_at(bytes, 0, header)) {
    return "";
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64) {
    return "it is a 32-bit program and libshp.so is not";
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    const uint64_t at = header.e_phoff + uint64_t{i} * header.e_phentsize;
    if (!copy_at(bytes, at, segment) || segment.p_type == PT_INTERP) {
      return "";
    }
  }
  return "it is statically linked, so LD_PRELOAD does not reach it";
}

bool raises_privileges(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return false;
  }
  const bool other_user =
      (info.st_mode & S_ISUID) != 0 && info.st_uid != geteuid();
  const bool other_group =
      (info.st_mode & S_ISGID) != 0 && info.st_gid != getegid();
  const bool capable =
      geteuid() != 0 &&
      getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  return other_user || other_group || capable;
}

}  // namespace

std::string why_not_preloaded(const std::string& command,
                              std::string_view search_path) {
  std::string path = along_path(command, search_path);
  for (int i = 0; i < kMaxInterpreters; ++i) {
    if (raises_privileges(path)) {
      return path +
             " runs with raised privileges (setuid, setgid or "
             "capabilities), where LD_PRELOAD is ignored";
    }
    const std::string bytes = first_bytes(path);
    if (bytes.starts_with("\177ELF")) {
      const std::string why = why_not_elf(bytes);
      return why.empty() ? "" : path + ": " + why;
    }
    if (!bytes.starts_with("#!")) {
      return "";
    }
    path = along_path(interpreter_of(bytes), search_path);
  }
  return "";
}

}  // namespace shp
