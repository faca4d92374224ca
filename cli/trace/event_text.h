// Our events as text, in the style of the file that they go into.
//
// Pure: appends to a string, no separators. Every event has kOwnCategory, by
// which a later run knows it. Names and args are JSON texts that were checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/trace/classify.h"

namespace shp {

// The row that an event stands on.
struct EventRow {
  std::string_view pid_token;  // as the trace writes it
  int64_t tid = 0;
};

// Times are ns on the trace's absolute timeline, multiples of the style's
// grain.
void append_slice(std::string& out,
                  const TimeStyle& style,
                  const EventRow& row,
                  std::string_view name,
                  int64_t start_ns,
                  int64_t end_ns,
                  std::string_view args);

// Two events, "b" and "e", on a track of their own.
void append_async_pair(std::string& out,
                       const TimeStyle& style,
                       const EventRow& row,
                       uint64_t id,
                       std::string_view name,
                       int64_t start_ns,
                       int64_t end_ns,
                       std::string_view args);

// A mark on the row.
void append_instant(std::string& out,
                    const TimeStyle& style,
                    const EventRow& row,
                    std::string_view name,
                    int64_t time_ns,
                    std::string_view args);

// A mark where a span starts whose end was never seen.
void append_unfinished(std::string& out,
                       const TimeStyle& style,
                       const EventRow& row,
                       std::string_view name,
                       int64_t start_ns);

// Values from here on, on a row of the process for each name and member.
void append_counter(std::string& out,
                    const TimeStyle& style,
                    const EventRow& row,
                    std::string_view name,
                    int64_t time_ns,
                    std::string_view values);

// A metadata event with one argument: `value` is its JSON text.
void append_metadata(std::string& out,
                     const EventRow& row,
                     std::string_view what,
                     std::string_view key,
                     std::string_view value);

// "123.456": ns as µs.
void append_us(std::string& out, int64_t ns);

}  // namespace shp
