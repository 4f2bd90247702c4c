// Data files with options, and what is read of them, for tests.
#pragma once

#include <string>

#include "small_rows.h"
#include "thimble/engine/error.h"

namespace thimble::rows {

inline Table table_with(const TableOptions& options, const std::string& name, const std::string& content) {
  DataTexts texts{.main = {name, content}, .validation = {{name, content}}, .test = {{name, content}}};
  texts.options = options;
  return Table(texts);
}

// Returns the rows of a file with the options, as text() has them, or its first problem.
inline std::string rows_with(const TableOptions& options, const std::string& name,
                             const std::string& content) {
  try {
    const Table table = table_with(options, name, content);
    std::string out;
    for (std::uint32_t row = 0; row < table.main_rows(); ++row)
      out += (row > 0 ? "\n" : "") + text(table, row);
    return out;
  } catch (const DataError& e) {
    const std::string message = e.what();  // the same problems for each of the three files
    const std::size_t start = message.find(name, 1);
    const std::string problem =
        message.substr(start + name.size(), message.find('\n', start) - start - name.size());
    return problem.substr(0, problem.find(" (and "));
  }
}

}  // namespace thimble::rows
