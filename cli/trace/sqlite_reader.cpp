#include "cli/trace/sqlite_reader.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <vector>

#include "cli/trace/byte_source.h"
#include "common/base/unique_fd.h"
#include "common/jsonl/json_check.h"
#include "common/jsonl/metadata_reader.h"
#include "common/jsonl/span_check.h"

namespace shp {
namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr int kOldestVersion = 1;

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
  }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

tl::unexpected<Error> failed(sqlite3* database) {
  return error(std::string("SQLite: ") + sqlite3_errmsg(database));
}

Result<Statement> prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) !=
      SQLITE_OK) {
    return failed(database);
  }
  return Statement(statement);
}

std::string_view text_of(sqlite3_stmt* row, int column) {
  const auto* text =
      reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(row, column));
  return text == nullptr ? std::string_view() : std::string_view(text, bytes);
}

// Calls take(row) for each; false when SQLite failed on the way.
template <typename Take>
Status for_rows(sqlite3* database, const std::string& sql, const Take& take) {
  const Result<Statement> statement = prepare(database, sql);
  if (!statement) {
    return tl::unexpected<Error>(statement.error());
  }
  int result = SQLITE_ROW;
  while ((result = sqlite3_step(statement->get())) == SQLITE_ROW) {
    take(statement->get());
  }
  return result == SQLITE_DONE ? Status{} : failed(database);
}

// Identifiers come from the file: quoted, they are only names.
std::string quoted_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    out += c;
    out += c == '"' ? "\"" : "";
  }
  return out + "\"";
}

// The table of spans, and what its columns are called.
struct SpanTable {
  std::string name;
  bool has_id = false;
  bool has_pid = false;
  std::string end;   // "duration_ns" or "end_ns"
  std::string args;  // "args", "attrs" or empty

  std::string select() const {
    return "SELECT " + std::string(has_id ? "id" : "rowid") + "," +
           (has_pid ? "pid" : "NULL") + ",tid,name,start_ns," + end + "," +
           (args.empty() ? "NULL" : args) + " FROM " + quoted_name(name);
  }
};

Result<std::vector<std::string>> table_names(sqlite3* database) {
  std::vector<std::string> names;
  const Status read = for_rows(
      database,
      "SELECT name FROM sqlite_master WHERE type='table' ORDER BY name",
      [&](sqlite3_stmt* row) { names.emplace_back(text_of(row, 0)); });
  if (!read) {
    return tl::unexpected<Error>(read.error());
  }
  return names;
}

Result<std::vector<std::string>> column_names(sqlite3* database,
                                              const std::string& table) {
  std::vector<std::string> names;
  const Status read =
      for_rows(database,
               "PRAGMA table_info(" + quoted_name(table) + ")",
               [&](sqlite3_stmt* row) { names.emplace_back(text_of(row, 1)); });
  if (!read) {
    return tl::unexpected<Error>(read.error());
  }
  return names;
}

// The table if it is one of spans; `end` stays empty when it is not.
SpanTable as_span_table(const std::string& name,
                        const std::vector<std::string>& columns) {
  const auto has = [&](const char* column) {
    for (const std::string& one : columns) {
      if (one == column) {
        return true;
      }
    }
    return false;
  };
  SpanTable table;
  table.name = name;
  if (has("tid") && has("name") && has("start_ns")) {
    table.end = has("duration_ns") ? "duration_ns"
                : has("end_ns")    ? "end_ns"
                                   : "";
  }
  table.has_id = has("id");
  table.has_pid = has("pid");
  table.args = has("args") ? "args" : has("attrs") ? "attrs" : "";
  return table;
}

Result<SpanTable> find_span_table(sqlite3* database) {
  const Result<std::vector<std::string>> names = table_names(database);
  if (!names) {
    return tl::unexpected<Error>(names.error());
  }
  std::vector<SpanTable> found;
  bool has_metadata = false;
  for (const std::string& name : *names) {
    const auto columns = column_names(database, name);
    if (!columns) {
      return tl::unexpected<Error>(columns.error());
    }
    has_metadata = has_metadata || name == "metadata";
    SpanTable table = as_span_table(name, *columns);
    if (!table.end.empty()) {
      found.push_back(std::move(table));
    }
  }
  if (!has_metadata || found.size() != 1) {
    return error(
        "unknown SQLite layout (a table metadata(key,value) and one "
        "of spans with tid, name, start_ns and duration_ns or end_ns "
        "are needed)");
  }
  return found.front();
}

// metadata(key, value) as one JSON object.
Result<std::string> read_metadata(sqlite3* database) {
  std::string object = "{";
  std::string problem;
  const Status read = for_rows(
      database, "SELECT key,value FROM metadata", [&](sqlite3_stmt* row) {
        const std::string_view value = text_of(row, 1);
        if (!is_json(value)) {
          problem = "metadata: value of " + std::string(text_of(row, 0)) +
                    " is not JSON";
          return;
        }
        object.append(object.size() == 1 ? "" : ",")
            .append(json_quote(text_of(row, 0)))
            .append(":")
            .append(value);
      });
  if (!read) {
    return tl::unexpected<Error>(read.error());
  }
  if (!problem.empty()) {
    return error(problem);
  }
  return object + "}";
}

class SqliteReader : public HostReader {
 public:
  SqliteReader(std::string path,
               Database database,
               Statement rows,
               bool ends_are_times,
               std::unique_ptr<HostMetadata> metadata)
      : path_(std::move(path)),
        database_(std::move(database)),
        rows_(std::move(rows)),
        ends_are_times_(ends_are_times),
        metadata_(std::move(metadata)),
        check_(*metadata_) {}

  const HostMetadata& metadata() const override { return *metadata_; }
  const std::map<int64_t, std::string>& thread_names() const override {
    return thread_names_;
  }
  const std::vector<HostClock>& clocks() const override { return clocks_; }
  const std::vector<HostOpenSpan>& open_spans() const override {
    return open_spans_;
  }

  Result<bool> next(HostSpan& span) override;

 private:
  std::string take_row(HostSpan& span);

  std::string path_;
  Database database_;
  Statement rows_;  // after database_: finalized first
  bool ends_are_times_;
  std::unique_ptr<HostMetadata> metadata_;
  SpanCheck check_;
  int64_t row_ = 0;
  std::string name_;
  std::string args_;
  std::map<int64_t, std::string> thread_names_;
  std::vector<HostClock> clocks_;
  std::vector<HostOpenSpan> open_spans_;
};

Result<bool> SqliteReader::next(HostSpan& span) {
  const int result = sqlite3_step(rows_.get());
  if (result == SQLITE_DONE) {
    const std::string problem = check_.end();
    return problem.empty() ? Result<bool>(false)
                           : error(path_ + ": " + problem);
  }
  if (result != SQLITE_ROW) {
    return context(path_, failed(database_.get()).value());
  }
  ++row_;
  std::string problem = take_row(span);
  if (!problem.empty()) {
    return error(path_ + ": row " + std::to_string(row_) + ": " + problem);
  }
  return true;
}

std::string SqliteReader::take_row(HostSpan& span) {
  sqlite3_stmt* row = rows_.get();
  for (const int column : {0, 2, 4, 5}) {
    if (sqlite3_column_type(row, column) != SQLITE_INTEGER) {
      return std::string(sqlite3_column_name(row, column)) +
             " is not an integer";
    }
  }
  if (sqlite3_column_type(row, 3) != SQLITE_TEXT) {
    return "name is not text";
  }
  span.id = sqlite3_column_int64(row, 0);
  span.tid = sqlite3_column_int64(row, 2);
  span.start_ns = sqlite3_column_int64(row, 4);
  span.duration_ns = sqlite3_column_int64(row, 5);
  if (ends_are_times_ &&
      __builtin_sub_overflow(
          span.duration_ns, span.start_ns, &span.duration_ns)) {
    return "end_ns is no time";
  }
  name_ = json_quote(text_of(row, 3));
  span.name = name_;
  const bool has_args = sqlite3_column_type(row, 6) != SQLITE_NULL;
  args_ = has_args ? text_of(row, 6) : std::string_view("{}");
  if (!is_json(args_) || args_.front() != '{') {
    return "args is not a JSON object";
  }
  span.args = args_;
  const bool has_pid = sqlite3_column_type(row, 1) != SQLITE_NULL;
  return check_.take(span,
                     has_pid ? sqlite3_column_int64(row, 1) : metadata_->pid);
}

Result<Database> open_database(const std::string& path) {
  sqlite3* raw = nullptr;
  const int result =
      sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
  Database database(raw);
  if (result != SQLITE_OK) {
    return failed(raw);
  }
  // The file's own schema must not run code or cost unbounded memory.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, 16 << 20);
  return database;
}

Result<std::unique_ptr<HostReader>> open_here(const std::string& path) {
  Result<Database> database = open_database(path);
  if (!database) {
    return tl::unexpected<Error>(database.error());
  }
  const Result<SpanTable> table = find_span_table(database->get());
  if (!table) {
    return tl::unexpected<Error>(table.error());
  }
  const Result<std::string> object = read_metadata(database->get());
  if (!object) {
    return tl::unexpected<Error>(object.error());
  }
  auto metadata = std::make_unique<HostMetadata>();
  const std::string problem =
      parse_metadata(*object, *metadata, kOldestVersion);
  if (!problem.empty()) {
    return error(problem);
  }
  Result<Statement> rows = prepare(database->get(), table->select());
  if (!rows) {
    return tl::unexpected<Error>(rows.error());
  }
  return std::make_unique<SqliteReader>(path,
                                        std::move(*database),
                                        std::move(*rows),
                                        table->end == "end_ns",
                                        std::move(metadata));
}

}  // namespace

bool is_sqlite(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char head[16] = {};
  return fd && read_at(fd.get(), head, sizeof(head), 0).value_or(0) == 16 &&
         std::string_view(head, sizeof(head)) == kMagic;
}

Result<std::unique_ptr<HostReader>> open_sqlite_host(const std::string& path) {
  Result<std::unique_ptr<HostReader>> reader = open_here(path);
  if (!reader) {
    return context(path, reader.error());
  }
  return reader;
}

}  // namespace shp
