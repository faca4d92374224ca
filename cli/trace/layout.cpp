#include "cli/trace/layout.h"

namespace shp {

bool RowStack::fits(int64_t start_ns, int64_t end_ns) {
  while (!ends_.empty() && ends_.back() <= start_ns) {
    ends_.pop_back();
  }
  if (!ends_.empty() && (end_ns > ends_.back() || ends_.size() == kMaxDepth)) {
    return false;
  }
  ends_.push_back(end_ns);
  return true;
}

int64_t TidChooser::choose(int64_t wanted) {
  int64_t tid = wanted < 1 || wanted > kLast ? kRowBase : wanted;
  while (tid == pid_ || used_.count(tid) != 0) {
    tid = tid == kLast ? 1 : tid + 1;
  }
  used_.insert(tid);
  return tid;
}

int64_t to_grain(int64_t ns, int64_t grain_ns) {
  if (grain_ns == 1) {
    return ns;
  }
  const int64_t up = ns + grain_ns / 2;
  const int64_t rest = up % grain_ns;
  return up - rest - (rest < 0 ? grain_ns : 0);
}

}  // namespace shp
