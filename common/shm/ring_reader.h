// RingReader: the consuming end of one ring (arena_abi.h), for the daemon's
// session thread. One object a ring; it keeps how far it has read.
//
// Trusts nothing: a block is entered only when its index, owner, ring and
// sequence number are right, and its bytes are copied before any is looked at.
// A ring that breaks a rule is marked broken, once, and never read again: what
// it still held cannot be known. Work in one call is bounded by `budget`, and a
// chain that runs in circles breaks the sequence.
//
// Templated on the source of bytes so that tests and the fuzzer can use blocks
// of a few records:
//   static constexpr uint32_t kBlockSize;
//   uint32_t block_count() const;
//   bool owns(uint32_t ring, uint32_t block) const;
//   bool read_block(uint32_t block, uint32_t offset, void* to, uint32_t n)
//   const;
//
// A visitor gets, in the ring's order:
//   void session(uint32_t generation);
//   void span(const Record&);                       the common one: no payload
//   void span(const Record&, const RecordArgs&);
//   void deferred(const Record&, const RecordArgs&);
//   void mark(const Record&, const RecordArgs&);    kInstant or kCounter
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/shm/arena_abi.h"
#include "common/shm/record_args.h"

namespace shp {

enum class ReadState { kCaughtUp, kMore, kBroken };

template <typename Source>
class RingReader {
 public:
  explicit RingReader(uint32_t ring = 0) : ring_(ring) {}

  // Goes on at `position` of an earlier reader, or (0) at the first record of
  // the claim, which is in `first_block`. Nothing is checked before read().
  void open(uint64_t position, uint32_t first_block) {
    *this = RingReader(ring_);
    opened_ = true;
    from_start_ = position == 0;
    position_ =
        from_start_ ? position_of(first_block, sizeof(BlockHeader)) : position;
    safe_position_ = position;
  }
  void close() { *this = RingReader(ring_); }
  void break_off() { give_up(); }

  bool opened() const { return opened_; }
  bool broken() const { return broken_; }
  // Behind the last record that was handed out whole: what may be committed.
  // Lags behind while pieces of args wait for their record.
  uint64_t safe_position() const { return safe_position_; }
  // Bytes of records that the last read() went over.
  size_t last_bytes() const { return last_bytes_; }
  bool at(uint64_t tail) const { return position_ == tail && entered_; }
  uint64_t unknown_records() const { return unknown_; }

  // For the end of a released ring: pieces whose record never came are nothing.
  void give_up_pieces() {
    drop_parts();
    note_safe();
  }

  template <typename Mark>
  void each_left_block(Mark&& mark) const {
    for (size_t i = 0; i < safe_left_; ++i) {
      mark(left_[i]);
    }
  }
  // Blocks that safe_position() has left; the caller frees them after its
  // commit. Empties the list.
  template <typename Free>
  void take_left_blocks(Free&& free) {
    for (size_t i = 0; i < safe_left_; ++i) {
      free(left_[i]);
    }
    left_.erase(left_.begin(),
                left_.begin() + static_cast<std::ptrdiff_t>(safe_left_));
    safe_left_ = 0;
  }
  // The block that the reader stands in, for the end of a released ring.
  uint32_t current_block() const { return position_block(position_); }

  // Hands on records up to `tail`, but not much more than `budget` bytes of
  // them. `scratch` holds kBlockSize bytes, aligned for a Record.
  template <typename Visitor>
  ReadState read(const Source& source,
                 uint64_t tail,
                 size_t budget,
                 std::byte* scratch,
                 Visitor&& visitor) {
    last_bytes_ = 0;
    if (broken_ || !good_position(source, tail) ||
        (!entered_ && !enter(source))) {
      return give_up();
    }
    while (position_ != tail) {
      if (last_bytes_ >= budget) {
        return ReadState::kMore;
      }
      const bool last = position_block(position_) == position_block(tail);
      uint32_t next = kNoBlock;
      uint32_t end = position_offset(tail);
      if ((!last && !link(source, &next, &end)) ||
          end < position_offset(position_)) {
        return give_up();
      }
      last_bytes_ += end - position_offset(position_);
      if (!read_chunk(source, end, scratch, visitor) ||
          (!last && !step(source, next))) {
        return give_up();
      }
    }
    return ReadState::kCaughtUp;
  }

 private:
  ReadState give_up() {
    broken_ = true;
    parts_.clear();
    return ReadState::kBroken;
  }

  static bool good_offset(uint32_t offset) {
    return offset >= sizeof(BlockHeader) && offset <= Source::kBlockSize &&
           offset % kRecordBytes == 0;
  }
  static bool good_position(const Source& source, uint64_t position) {
    return position_block(position) < source.block_count() &&
           good_offset(position_offset(position));
  }

  bool header_of(const Source& source, uint32_t block, BlockHeader* to) const {
    return block < source.block_count() && source.owns(ring_, block) &&
           source.read_block(block, 0, to, sizeof(*to)) && to->ring == ring_;
  }

  bool enter(const Source& source) {
    alignas(BlockHeader) BlockHeader header;
    if (!good_position(source, position_) ||
        !header_of(source, position_block(position_), &header) ||
        (from_start_ && header.sequence != 0)) {
      return false;
    }
    sequence_ = header.sequence;
    entered_ = true;
    return true;
  }

  // Where the current block ends and what follows it, once the tail is
  // elsewhere.
  bool link(const Source& source, uint32_t* next, uint32_t* end) const {
    BlockHeader header;
    if (!header_of(source, position_block(position_), &header) ||
        header.sequence != sequence_) {
      return false;
    }
    *next = header.next.load(std::memory_order_relaxed);
    *end = header.used.load(std::memory_order_relaxed);
    return *next != position_block(position_) && good_offset(*end) &&
           *end >= position_offset(position_);
  }

  bool step(const Source& source, uint32_t next) {
    BlockHeader header;
    if (!header_of(source, next, &header) || header.sequence != sequence_ + 1) {
      return false;
    }
    left_.push_back(position_block(position_));
    ++sequence_;
    position_ = position_of(next, sizeof(BlockHeader));
    note_safe();
    return true;
  }

  // Only between pieces of args.
  void note_safe() {
    if (parts_id_ == 0) {
      safe_position_ = position_;
      safe_left_ = left_.size();
    }
  }

  template <typename Visitor>
  bool read_chunk(const Source& source,
                  uint32_t end,
                  std::byte* scratch,
                  Visitor&& visitor) {
    const uint32_t begin = position_offset(position_);
    if (!source.read_block(
            position_block(position_), begin, scratch, end - begin)) {
      return false;
    }
    const std::byte* at = scratch;
    const std::byte* const stop = scratch + (end - begin);
    while (at != stop) {
      const auto& record = *reinterpret_cast<const Record*>(at);
      const size_t bytes = size_t{record.units} * kRecordBytes;
      if (bytes == 0 || bytes > static_cast<size_t>(stop - at)) {
        return false;
      }
      if (record.kind == kSpan && record.flags == 0) {
        drop_parts();
        visitor.span(record);
      } else {
        if (record.kind == kArgsPart && parts_id_ != record.id + 1) {
          // What stands before these pieces is handed out whole.
          drop_parts();
          position_ = position_of(position_block(position_),
                                  begin + static_cast<uint32_t>(at - scratch));
          note_safe();
        }
        other(record,
              {reinterpret_cast<const char*>(at) + sizeof(Record),
               bytes - sizeof(Record)},
              visitor);
      }
      at += bytes;
    }
    position_ = position_of(position_block(position_), end);
    note_safe();
    return true;
  }

  template <typename Visitor>
  void other(const Record& record,
             std::string_view payload,
             Visitor&& visitor) {
    switch (record.kind) {
      case kSession:
        drop_parts();
        return visitor.session(record.name);
      case kArgsPart:
        return add_part(record, payload);
      case kSpan:
        visitor.span(record, args_of(record, payload));
        return drop_parts();
      case kDeferred:
        visitor.deferred(record, args_of(record, payload));
        return drop_parts();
      case kInstant:
      case kCounter:
        visitor.mark(record, args_of(record, payload));
        return drop_parts();
      default:
        drop_parts();
        ++unknown_;
    }
  }

  void add_part(const Record& record, std::string_view payload) {
    if (parts_id_ != record.id + 1) {
      parts_.clear();
      parts_id_ = record.id + 1;
      parts_good_ = true;
    }
    std::string_view piece;
    parts_good_ = parts_good_ && take_counted(&payload, &piece) &&
                  parts_.size() + piece.size() <= kMaxArgsBytes;
    if (parts_good_) {
      parts_ += piece;
    }
  }
  void drop_parts() {
    if (parts_id_ != 0) [[unlikely]] {
      parts_.clear();
      parts_id_ = 0;
    }
  }

  RecordArgs args_of(const Record& record, std::string_view payload) {
    RecordArgs args = unpack_args(record, payload);
    if ((record.flags & kHasParts) != 0) {
      args.good = args.good && parts_good_ && parts_id_ == record.id + 1 &&
                  parts_.size() + args.text.size() <= kMaxArgsBytes;
      if (args.good) {
        parts_ += args.text;
        args.text = parts_;
      }
    }
    return args;
  }

  uint32_t ring_ = 0;
  uint32_t sequence_ = 0;
  bool opened_ = false;
  bool from_start_ = false;
  bool entered_ = false;
  bool broken_ = false;
  bool parts_good_ = false;
  uint64_t position_ = 0;
  uint64_t safe_position_ = 0;
  uint64_t unknown_ = 0;
  size_t last_bytes_ = 0;
  uint64_t parts_id_ = 0;  // id + 1 of the record that the pieces belong to
  std::string parts_;
  std::vector<uint32_t> left_;
  size_t safe_left_ = 0;
};

}  // namespace shp
