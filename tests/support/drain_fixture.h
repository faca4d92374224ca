// A session being drained by hand: arena, ring writers, a sink that keeps the
// text, and the lines read back. For unit tests of daemon/drain*.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/drain.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_arena.h"

namespace shp::test {

class StringSink : public LineSink {
 public:
  bool write(std::string_view bytes) override {
    text += bytes;
    return true;
  }
  std::string text;
};

inline ClockSample at(int64_t ns) {
  ClockSample sample;
  sample.ticks = static_cast<uint64_t>(ns);
  sample.monotonic_ns = ns;
  return sample;
}

// A session of generation 3 that began at 1000 ns, over a monotonic clock so
// that ticks are nanoseconds.
struct Fixture {
  TestArena arena;
  TemporaryDirectory directory;
  uint32_t step = arena.add_name("step");
  StringSink sink;
  LineWriter writer{sink};
  DeferredSpool spool{directory.fd.get()};
  ArenaView view;
  std::unique_ptr<Drain> drain;

  explicit Fixture(bool begin = true) {
    view = std::move(*ArenaView::open(arena.fd()));
    if (begin) {
      start();
    }
  }
  void start(uint32_t generation = 3) {
    drain = std::make_unique<Drain>(
        view, writer, spool, Drain::Settings{generation, 7, at(1000)});
    drain->begin();
  }
  void round(int64_t now_ns) {
    drain->see_tails();
    drain->round(at(now_ns));
    writer.flush();
    drain->commit(sink.text.size());
  }
  void finish(int64_t stop_ns) {
    drain->begin_finish(at(stop_ns));
    drain->see_tails();
    drain->round(at(stop_ns));
    drain->end_finish();
    writer.flush();
    drain->commit(sink.text.size());
  }
  // Span lines as "tid:start+duration" and their args when they have some.
  std::vector<std::string> spans() const {
    std::vector<std::string> out;
    size_t from = 0;
    while ((from = sink.text.find("{\"type\":\"span\"", from)) !=
           std::string::npos) {
      const size_t end = sink.text.find('\n', from);
      const std::string line = sink.text.substr(from, end - from);
      const std::string args = field(line, "args", line.size() - 1);
      out.push_back(field(line, "tid") + ":" + field(line, "start_ns") + "+" +
                    field(line, "duration_ns") + (args == "{}" ? "" : args));
      from = end;
    }
    return out;
  }
  static std::string field(const std::string& line,
                           const std::string& key,
                           size_t end = 0) {
    const size_t begin = line.find("\"" + key + "\":") + key.size() + 3;
    return line.substr(begin, (end != 0 ? end : line.find(',', begin)) - begin);
  }
};
using Lines = std::vector<std::string>;

}  // namespace shp::test
