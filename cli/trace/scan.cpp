#include "cli/trace/scan.h"

#include "cli/trace/event_facts.h"
#include "cli/trace/event_fields.h"
#include "cli/trace/event_walk.h"
#include "cli/trace/loose_json.h"
#include "cli/trace/window.h"

namespace shp {
namespace {

bool is_empty_object(const char* at, const char* end) {
  return skip_loose_space(at + 1, end) + 1 == end;
}

class Scanner {
 public:
  Scanner(ByteSource& source, const OnEvent& on_event)
      : source_(source), window_(source), facts_(scan_), on_event_(on_event) {}

  Result<TraceScan> run();

 private:
  // What a step found: go on, or stop since the file is no trace or is broken.
  enum class Step { kGoOn, kStop };

  Step fail(uint64_t offset, std::string_view what);
  Step no_trace(std::string_view why);
  Step ends_inside(const char* what);
  bool refill();
  bool to_token();
  Step run_form();
  Step object();
  Step member();
  Step take_member(std::string_view key);
  void take_value(std::string_view key, std::string_view value);
  Step skip_long_value();
  Step events();
  EventParse parse(EventFields& fields);
  Step event();
  void take_event(const EventFields& fields, uint64_t begin, uint64_t end);
  void take_own(uint64_t begin, uint64_t end);
  Step finish();

  ByteSource& source_;
  Window window_;
  TraceScan scan_;
  EventFacts facts_;
  const OnEvent& on_event_;
  Error error_;
  bool seen_events_ = false;
  // Inside the array: behind the last event of any kind; 0 before the first.
  uint64_t last_event_end_ = 0;
  bool own_leads_ = false;  // ours are first, the next comma goes with them
};

Scanner::Step Scanner::fail(uint64_t offset, std::string_view what) {
  error_.message = "byte " + std::to_string(offset) + ": " + std::string(what);
  return Step::kStop;
}

Scanner::Step Scanner::no_trace(std::string_view why) {
  scan_.not_a_trace = why;
  return Step::kStop;
}

// After refill() was false: the source failed, or the file is too short.
Scanner::Step Scanner::ends_inside(const char* what) {
  if (error_.message.empty()) {
    fail(window_.offset_of(window_.end()),
         std::string("file ends inside ") + what + " (cut off?)");
  }
  return Step::kStop;
}

bool Scanner::refill() {
  source_.settle(scan_.own.empty() ? scan_.insert_at : scan_.own.front().begin);
  const Result<bool> more = window_.more();
  if (!more) {
    error_ = more.error();
  }
  return more.value_or(false);
}

// Moves to the next byte that is not white space; false at the end.
bool Scanner::to_token() {
  while (true) {
    window_.move_to(skip_loose_space(window_.at(), window_.end()));
    if (window_.size() > 0) {
      return true;
    }
    if (!refill()) {
      return false;
    }
  }
}

Scanner::Step Scanner::run_form() {
  static constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";
  if (!to_token()) {
    return error_.message.empty() ? fail(0, "file is empty") : Step::kStop;
  }
  if (std::string_view(window_.at(), window_.size()).substr(0, 3) ==
      kUtf8Mark) {
    window_.move_to(window_.at() + 3);
    if (!to_token()) {
      return fail(0, "file is empty");
    }
  }
  if (*window_.at() == '{') {
    scan_.form = TraceForm::kObject;
    return object();
  }
  if (*window_.at() == '[') {
    scan_.form = TraceForm::kArray;
    return events();
  }
  return no_trace("is not JSON");
}

Scanner::Step Scanner::object() {
  window_.move_to(window_.at() + 1);
  while (true) {
    if (!to_token()) {
      return ends_inside("the trace's object");
    }
    if (*window_.at() == '}') {
      window_.move_to(window_.at() + 1);
      return seen_events_ ? Step::kGoOn
                          : no_trace("is JSON without traceEvents");
    }
    if (member() == Step::kStop) {
      return Step::kStop;
    }
    if (!to_token()) {
      return ends_inside("the trace's object");
    }
    if (*window_.at() == ',') {
      window_.move_to(window_.at() + 1);
    } else if (*window_.at() != '}') {
      return fail(window_.offset(), "no comma after a member of the trace");
    }
  }
}

Scanner::Step Scanner::member() {
  if (*window_.at() != '"') {
    return fail(window_.offset(), "member's name does not start with a quote");
  }
  const char* behind = nullptr;
  while ((behind = skip_loose_string(window_.at() + 1, window_.end())) ==
         nullptr) {
    if (window_.is_full()) {
      return fail(window_.offset(), "member's name is too long");
    }
    if (!refill()) {
      return ends_inside("a member's name");
    }
  }
  const char* start = window_.at() + 1;
  const std::string key(start, static_cast<size_t>(behind - start - 1));
  window_.move_to(behind);
  if (!to_token()) {
    return ends_inside("the trace's object");
  }
  if (*window_.at() != ':') {
    return fail(window_.offset(), "no colon after a member's name");
  }
  window_.move_to(window_.at() + 1);
  if (!to_token()) {
    return ends_inside("the trace's object");
  }
  return take_member(key);
}

Scanner::Step Scanner::take_member(std::string_view key) {
  if (key == "traceEvents") {
    if (seen_events_) {
      return fail(window_.offset(), "traceEvents is there twice");
    }
    return *window_.at() == '[' ? events()
                                : no_trace("traceEvents is not an array");
  }
  const char* behind = nullptr;
  while ((behind = skip_loose_value(window_.at(), window_.end())) == nullptr) {
    if (window_.is_full()) {
      return skip_long_value();
    }
    if (!refill()) {
      return ends_inside("a member of the trace");
    }
  }
  if (behind == window_.at()) {
    return fail(window_.offset(), "member has no value");
  }
  take_value(key, {window_.at(), static_cast<size_t>(behind - window_.at())});
  window_.move_to(behind);
  return Step::kGoOn;
}

void Scanner::take_value(std::string_view key, std::string_view value) {
  if (key == "baseTimeNanoseconds") {
    scan_.base_ns = loose_int(value);
    scan_.has_odd_base = !scan_.base_ns.has_value();
  } else if (key == "host_name") {
    scan_.host_name = loose_text(value);
  } else if (key == "distributedInfo") {
    scan_.rank = loose_int(loose_member(value, "rank"));
  } else if (key == "shpExport") {
    scan_.made_by_export = true;
  }
}

// Passes over a value that is longer than the window, byte by byte.
Scanner::Step Scanner::skip_long_value() {
  uint64_t depth = 0;
  bool in_string = false;
  bool escaped = false;
  while (true) {
    const char* at = window_.at();
    for (; at < window_.end(); ++at) {
      if (escaped) {
        escaped = false;
      } else if (in_string) {
        escaped = *at == '\\';
        in_string = *at != '"';
      } else if (*at == '"') {
        in_string = true;
      } else if (*at == '{' || *at == '[') {
        ++depth;
      } else if (*at == '}' || *at == ']') {
        --depth;
      } else {
        continue;
      }
      if (depth == 0 && !in_string && !escaped) {
        window_.move_to(at + 1);
        return Step::kGoOn;
      }
    }
    window_.move_to(window_.end());
    if (!refill()) {
      return ends_inside("a long value");
    }
  }
}

Scanner::Step Scanner::events() {
  seen_events_ = true;
  window_.move_to(window_.at() + 1);
  scan_.insert_at = window_.offset();
  bool after_event = false;
  while (true) {
    if (!to_token()) {
      return ends_inside("the events array");
    }
    const char found = *window_.at();
    if (found == ']') {
      window_.move_to(window_.at() + 1);
      return Step::kGoOn;
    }
    if (found == ',' && after_event) {
      window_.move_to(window_.at() + 1);
      if (own_leads_) {
        scan_.own.back().end = window_.offset();
      }
      after_event = false;
    } else if (found == '{' && !after_event) {
      if (event() == Step::kStop) {
        return Step::kStop;
      }
      after_event = true;
    } else if (scan_.form == TraceForm::kArray && last_event_end_ == 0) {
      return no_trace("is a JSON array of other things than events");
    } else {
      return fail(window_.offset(),
                  after_event ? "no comma after an event"
                              : "event does not start with \"{\"");
    }
  }
}

EventParse Scanner::parse(EventFields& fields) {
  const StructureIndex* index = window_.index();
  const char* behind =
      index == nullptr ? nullptr : walk_event(*index, window_.place(), fields);
  if (behind != nullptr) {
    return {Parsed::kOk, behind, ""};
  }
  fields = {};
  return parse_event(window_.at(), window_.end(), fields);
}

Scanner::Step Scanner::event() {
  while (true) {
    EventFields fields;
    const EventParse parsed = parse(fields);
    const uint64_t begin = window_.offset();
    if (parsed.result == Parsed::kBad) {
      return fail(window_.offset_of(parsed.at), parsed.what);
    }
    if (parsed.result == Parsed::kOk) {
      const bool first = last_event_end_ == 0;
      const bool empty = first && is_empty_object(window_.at(), parsed.at);
      scan_.starts_empty = scan_.starts_empty || empty;
      if (first && !empty && fields.ph.empty() &&
          scan_.form == TraceForm::kArray) {
        return no_trace("is a JSON array whose objects have no \"ph\"");
      }
      if (on_event_ && loose_text(fields.cat) != kOwnCategory) {
        on_event_(
            fields,
            {window_.at(), static_cast<size_t>(parsed.at - window_.at())});
      }
      take_event(fields, begin, window_.offset_of(parsed.at));
      window_.move_to(parsed.at);
      return error_.message.empty() ? Step::kGoOn : Step::kStop;
    }
    if (window_.is_full()) {
      if (skip_long_value() == Step::kStop) {
        return Step::kStop;
      }
      take_event({}, begin, window_.offset());
      return Step::kGoOn;
    }
    if (!refill()) {
      return ends_inside("an event");
    }
  }
}

void Scanner::take_event(const EventFields& fields,
                         uint64_t begin,
                         uint64_t end) {
  if (loose_text(fields.cat) == kOwnCategory) {
    take_own(begin, end);
  } else {
    own_leads_ = false;
    scan_.has_events = true;
    scan_.insert_at = end;
    ++scan_.events;
    if (!facts_.take(fields)) {
      fail(begin, "trace has too many processes or threads");
    }
  }
  last_event_end_ = end;
}

// The comma before one of our events goes with it; before the first event of
// the array there is none, and the one behind goes instead.
void Scanner::take_own(uint64_t begin, uint64_t end) {
  ++scan_.own_events;
  own_leads_ = own_leads_ || last_event_end_ == 0;
  if (!scan_.own.empty() &&
      (own_leads_ || scan_.own.back().end == last_event_end_)) {
    scan_.own.back().end = end;
    return;
  }
  if (scan_.own.size() == 65536) {
    fail(begin, "our earlier events are scattered all over the trace");
    return;
  }
  scan_.own.push_back({last_event_end_ == 0 ? begin : last_event_end_, end});
}

Scanner::Step Scanner::finish() {
  if (to_token()) {
    return fail(window_.offset(), "text after the trace's end");
  }
  scan_.bytes = window_.offset();
  return error_.message.empty() ? Step::kGoOn : Step::kStop;
}

Result<TraceScan> Scanner::run() {
  if (run_form() == Step::kGoOn) {
    finish();
  }
  if (!error_.message.empty()) {
    return tl::unexpected<Error>(error_);
  }
  return std::move(scan_);
}

}  // namespace

Result<TraceScan> scan_trace(ByteSource& source, const OnEvent& on_event) {
  return Scanner(source, on_event).run();
}

}  // namespace shp
