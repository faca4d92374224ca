// The one wrapper over Boost.Interprocess: a shared read-write mapping of a
// descriptor that somebody else made and may close. Boost throws; nothing
// thrown leaves this header. Used by both ends of an arena.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>

namespace shp {

class MappedFd {
 public:
  MappedFd() = default;

  // Maps [0, bytes) of `fd`; the descriptor may be closed afterwards. On
  // failure the result is empty and errno says why.
  static MappedFd map(int fd, uint64_t bytes) noexcept {
    MappedFd result;
    try {
      result.region_ = boost::interprocess::mapped_region(
          Handle{fd}, boost::interprocess::read_write, 0, bytes);
    } catch (const boost::interprocess::interprocess_exception& failure) {
      errno = failure.get_native_error();
    }
    return result;
  }

  // Null when empty.
  std::byte* data() const noexcept {
    return static_cast<std::byte*>(region_.get_address());
  }
  uint64_t size() const noexcept { return region_.get_size(); }
  explicit operator bool() const noexcept { return data() != nullptr; }

 private:
  // What mapped_region asks of a "memory mappable".
  struct Handle {
    int fd;
    boost::interprocess::mapping_handle_t get_mapping_handle() const {
      return boost::interprocess::ipcdetail::mapping_handle_from_file_handle(
          fd);
    }
  };

  boost::interprocess::mapped_region region_;
};

}  // namespace shp
