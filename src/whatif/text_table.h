// Tables of an answer's text: in the order in which people count, and pods that fare alike in one row.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace berth::whatif {

using Row = std::vector<std::string>;

/// node-2 before node-10.
bool comes_before(std::string_view a, std::string_view b);

/// By their cells, the first one first.
void sort_rows(std::vector<Row>& rows);

/// Rows whose first cells are pods of one maker ("shop/web-5d8f-" and a name of their own) and whose other cells are the same become one
/// row, "shop/web-5d8f-* (12 pods)", where there are three or more.
std::vector<Row> together(std::vector<Row> rows);

/// The scheduler's message without what it tells of preemption and, where it is still long, without its end: -o json has it whole.
std::string in_short(std::string_view message);

/// Columns as wide as their widest cell, the last one as long as it is; more than `most` rows are counted only.
std::string table(const Row& head, const std::vector<Row>& rows, std::size_t most);

}  // namespace berth::whatif
