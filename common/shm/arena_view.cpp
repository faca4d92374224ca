#include "common/shm/arena_view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace shp {
namespace {

// Smallest unit at which two parts may meet; the first parts hold atomics that
// must not share a cache line with another part's.
constexpr uint64_t kPartAlignment = 64;

struct Part {
  uint64_t offset;
  uint64_t bytes;
  uint64_t alignment;
};

bool within_limits(const ArenaGeometry& geometry) {
  return geometry.max_rings >= 1 && geometry.max_rings <= kMaxRings &&
         geometry.block_count >= 1 && geometry.block_count <= kMaxBlocks &&
         geometry.name_capacity >= 1 && geometry.name_capacity <= kMaxNames &&
         geometry.name_bytes_capacity >= 1 &&
         geometry.name_bytes_capacity <= kMaxNameTableBytes;
}

Status check_file(int fd, struct stat* info) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) {
    return error("arena is not a memfd");
  }
  if ((seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_GROW) == 0) {
    return error("arena is not sealed against a change of its size");
  }
  if (fstat(fd, info) != 0) {
    return errno_error("arena", errno);
  }
  return {};
}

Status check_header(const ArenaHeader& header) {
  if (header.magic != kArenaMagic) {
    return error("arena: not an arena");
  }
  if (header.abi_version != kAbiVersion ||
      header.header_bytes != sizeof(ArenaHeader)) {
    return tl::unexpected<Error>(
        Error{"arena of ABI version " + std::to_string(header.abi_version) +
                  ", this is " + std::to_string(kAbiVersion),
              EPROTO});
  }
  if (header.clock_kind > static_cast<uint32_t>(ClockKind::kCntvct)) {
    return error("arena: unknown clock kind " +
                 std::to_string(header.clock_kind));
  }
  return {};
}

}  // namespace

Status check_geometry(const ArenaGeometry& geometry, uint64_t file_bytes) {
  if (geometry.arena_bytes != file_bytes) {
    return error("arena: size is not what its header says");
  }
  if (!within_limits(geometry)) {
    return error("arena: a count is out of limits");
  }
  const Part parts[] = {
      {geometry.rings_offset,
       uint64_t{geometry.max_rings} * sizeof(RingHeader),
       kPageBytes},
      {geometry.states_offset,
       uint64_t{geometry.block_count} * sizeof(uint32_t),
       kPartAlignment},
      {geometry.names_offset,
       uint64_t{geometry.name_capacity} * sizeof(NameEntry),
       kPartAlignment},
      {geometry.name_bytes_offset, geometry.name_bytes_capacity, 1},
      {geometry.blocks_offset,
       uint64_t{geometry.block_count} * kBlockBytes,
       kPageBytes},
  };
  uint64_t end = kDaemonAreaOffset + kDaemonAreaBytes;
  for (const Part& part : parts) {
    if (part.offset % part.alignment != 0 || part.offset < end ||
        part.offset > file_bytes || part.bytes > file_bytes - part.offset) {
      return error("arena: a part lies outside, askew or over another");
    }
    end = part.offset + part.bytes;
  }
  return {};
}

Result<ArenaView> ArenaView::open(UniqueFd fd) {
  struct stat info;
  if (Status good = check_file(fd.get(), &info); !good) {
    return tl::unexpected(good.error());
  }
  ArenaView view;
  view.fd_ = std::move(fd);
  alignas(ArenaHeader) std::byte copy[sizeof(ArenaHeader)];
  if (!view.read_at(0, copy, sizeof(copy))) {
    return error("arena: too short for its header");
  }
  const auto& header = *reinterpret_cast<const ArenaHeader*>(copy);
  if (Status good = check_header(header); !good) {
    return tl::unexpected(good.error());
  }
  view.geometry_ = header.geometry;
  view.clock_kind_ = static_cast<ClockKind>(header.clock_kind);
  std::memcpy(view.token_, header.token, sizeof(view.token_));
  if (Status good =
          check_geometry(view.geometry_, static_cast<uint64_t>(info.st_size));
      !good) {
    return tl::unexpected(good.error());
  }
  view.map_ = MappedFd::map(view.fd_.get(), view.geometry_.names_offset);
  if (!view.map_) {
    return errno_error("arena: mmap", errno);
  }
  // The daemon's own page is the one that no client has touched: a lack of
  // memory is an error here, not a signal later. EINVAL: before Linux 5.14.
  if (madvise(view.daemon_area(), kPageBytes, MADV_POPULATE_WRITE) != 0 &&
      errno != EINVAL) {
    return errno_error("arena: no memory for the daemon's page", errno);
  }
  return view;
}

ArenaHeader& ArenaView::header() const {
  return *reinterpret_cast<ArenaHeader*>(map_.data());
}

uint32_t ArenaView::rings_in_use() const {
  return std::min(header().rings_high.load(std::memory_order_acquire),
                  geometry_.max_rings);
}

std::byte* ArenaView::daemon_area() const {
  return map_.data() + kDaemonAreaOffset;
}

// A crash between a block's change of hands and the count of it leaves the
// count off by one; clients that claim meanwhile make this one inexact by as
// few.
void ArenaView::mend_blocks_left(const std::vector<uint32_t>& sequence_of,
                                 const std::vector<bool>& known) const {
  uint32_t used = 0;
  for (uint32_t block = 0; block < geometry_.block_count; ++block) {
    const uint32_t owner = state(block).load(std::memory_order_acquire);
    used += owner != 0 ? 1 : 0;
    const uint32_t ring = (owner & ~kBlockLeft) - 1;
    if ((owner & kBlockLeft) == 0 || ring >= known.size() || !known[ring]) {
      continue;
    }
    BlockHeader header;
    const bool behind =
        read_block(block, 0, &header, sizeof(header)) &&
        static_cast<int32_t>(header.sequence - sequence_of[ring]) < 0;
    if (behind) {
      free_block(ring, block);
      --used;
    } else {
      state(block).store(ring + 1, std::memory_order_release);
    }
  }
  const uint32_t counted = header().blocks_used.load(std::memory_order_relaxed);
  header().blocks_used.fetch_add(used - counted, std::memory_order_relaxed);
}

RingHeader& ArenaView::ring(uint32_t index) const {
  return reinterpret_cast<RingHeader*>(map_.data() +
                                       geometry_.rings_offset)[index];
}

bool ArenaView::ring_exists(uint32_t index) const {
  const auto offset = static_cast<off_t>(geometry_.rings_offset +
                                         uint64_t{index} * sizeof(RingHeader));
  return lseek(fd_.get(), offset, SEEK_DATA) == offset;
}

std::atomic<uint32_t>& ArenaView::state(uint32_t block) const {
  return reinterpret_cast<std::atomic<uint32_t>*>(
      map_.data() + geometry_.states_offset)[block];
}

bool ArenaView::owns(uint32_t ring, uint32_t block) const {
  return (state(block).load(std::memory_order_acquire) & ~kBlockLeft) ==
         ring + 1;
}

bool ArenaView::read_block(uint32_t block,
                           uint32_t offset,
                           void* to,
                           uint32_t bytes) const {
  return read_at(
      geometry_.blocks_offset + uint64_t{block} * kBlockBytes + offset,
      to,
      bytes);
}

void ArenaView::mark_left(uint32_t ring, uint32_t block) const {
  uint32_t owner = ring + 1;
  state(block).compare_exchange_strong(owner,
                                       owner | kBlockLeft,
                                       std::memory_order_release,
                                       std::memory_order_relaxed);
}

void ArenaView::free_block(uint32_t ring, uint32_t block) const {
  uint32_t owner = ring + 1;
  uint32_t left = owner | kBlockLeft;
  if (!state(block).compare_exchange_strong(
          left, 0, std::memory_order_release, std::memory_order_relaxed) &&
      !state(block).compare_exchange_strong(
          owner, 0, std::memory_order_release, std::memory_order_relaxed)) {
    return;
  }
  header().blocks_used.fetch_sub(1, std::memory_order_relaxed);
  // The lowest free block, as far as a hint can know: a writer that goes on
  // upwards from a high one would populate memory that it need not have.
  if (block < header().free_hint.load(std::memory_order_relaxed)) {
    header().free_hint.store(block, std::memory_order_relaxed);
  }
}

uint32_t ArenaView::names_published() const {
  return std::min(header().names_count.load(std::memory_order_acquire),
                  geometry_.name_capacity);
}

bool ArenaView::read_name_entry(uint32_t id, NameEntry* to) const {
  return id != kNoName && id <= names_published() &&
         read_at(geometry_.names_offset + uint64_t{id - 1} * sizeof(NameEntry),
                 to,
                 sizeof(*to)) &&
         to->bytes >= 1 && to->bytes <= kMaxNameBytes &&
         to->offset <= geometry_.name_bytes_capacity &&
         to->bytes <= geometry_.name_bytes_capacity - to->offset;
}

bool ArenaView::read_name_bytes(const NameEntry& entry, char* to) const {
  return read_at(geometry_.name_bytes_offset + entry.offset, to, entry.bytes);
}

bool ArenaView::read_at(uint64_t offset, void* to, size_t bytes) const {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got =
        pread(fd_.get(), out, bytes, static_cast<off_t>(offset));
    if (got <= 0) {
      if (got < 0 && errno == EINTR) {
        continue;
      }
      return false;
    }
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace shp
