// Historical host files of the predecessor: SQLite, with a table
// metadata(key, value) whose values are JSON, and one table of spans whose
// columns are found by name: tid, name, start_ns, duration_ns or end_ns, and
// where they are there pid, id, args or attrs.
//
// A HostReader like the others: every row is checked, and the count of them.
// Read-only, not trusted; one reader belongs to one thread.
#pragma once

#include <memory>
#include <string>

#include "cli/trace/host_reader.h"

namespace shp {

// Whether the file begins as SQLite files do.
bool is_sqlite(const std::string& path);

// A database whose tables are not those of a session.
bool is_foreign_database(const std::string& path);

Result<std::unique_ptr<HostReader>> open_sqlite_host(const std::string& path);

}  // namespace shp
