#include "common/shm/name_reader.h"

#include <algorithm>

#include "common/jsonl/line_writer.h"

namespace shp {

NameReader::NameReader(const ArenaView& arena)
    : arena_(arena), entries_(kEntries) {}

void NameReader::forget_all() {
  std::fill(entries_.begin(), entries_.end(), Entry{});
  text_.clear();
}

std::string_view NameReader::load(uint32_t id) {
  NameEntry name;
  if (!arena_.read_name_entry(id, &name)) {
    return {};
  }
  raw_.resize(name.bytes);
  if (!arena_.read_name_bytes(name, raw_.data())) {
    return {};
  }
  long_.clear();
  append_span_name_text(raw_, &long_);
  if (long_.size() > kTextBytes / 16) {
    return long_;
  }
  if (text_.size() + long_.size() > kTextBytes) {
    forget_all();
  }
  entries_[id % kEntries] = {id,
                             static_cast<uint32_t>(text_.size()),
                             static_cast<uint32_t>(long_.size())};
  text_ += long_;
  return long_;
}

}  // namespace shp
