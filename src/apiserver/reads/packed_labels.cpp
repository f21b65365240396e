#include "apiserver/reads/packed_labels.h"

#include <cstring>

namespace berth::apiserver {
namespace {

using Op = model::Requirement::Op;

void put_number(std::string& out, std::size_t number) {
  for (; number >= 128; number >>= 7) out += static_cast<char>((number & 127) | 128);
  out += static_cast<char>(number);
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

/// Over what was put.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  [[nodiscard]] bool is_at_end() const { return text_.empty(); }
  std::size_t number() {
    std::size_t out = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(text_.front());
      text_.remove_prefix(1);
      out |= std::size_t{byte & 127U} << shift;
      if (byte < 128) return out;
    }
  }
  std::string_view text() {
    const std::size_t size = number();
    const auto out = text_.substr(0, size);
    text_.remove_prefix(size);
    return out;
  }

 private:
  std::string_view text_;
};

/// Whether the requirement that comes next holds; all of it is read.
bool holds(Reader& reader, const model::Labels& labels) {
  const auto op = static_cast<Op>(reader.number());
  const std::size_t count = reader.number();
  const std::string* value = labels.get(reader.text());
  if (op == Op::kGt || op == Op::kLt) {
    // Rare: numbers are compared where they always are.
    model::Requirement one{.key = "x", .op = op, .values = {}};
    for (std::size_t i = 0; i < count; ++i) one.values.emplace_back(reader.text());
    return value != nullptr && one.matches(model::Labels({{"x", *value}}));
  }
  bool is_named = false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto named = reader.text();
    is_named |= value != nullptr && *value == named;
  }
  switch (op) {
    case Op::kIn:
      return is_named;
    case Op::kNotIn:
      return !is_named;
    case Op::kExists:
      return value != nullptr;
    default:
      return value == nullptr;
  }
}

}  // namespace

PackedLabels::PackedLabels(const model::Selector& selector) : is_nothing_(selector.is_nothing()) {
  for (const auto& requirement : selector.requirements()) {
    put_number(text_, static_cast<std::size_t>(requirement.op));
    put_number(text_, requirement.values.size());
    put_text(text_, requirement.key);
    for (const auto& value : requirement.values) put_text(text_, value);
  }
  text_.shrink_to_fit();
}

bool PackedLabels::matches(const model::Labels& labels) const {
  if (is_nothing_) return false;
  for (Reader reader(text_); !reader.is_at_end();)
    if (!holds(reader, labels)) return false;
  return true;
}

void pack_labels(WatchFilter& filter) {
  constexpr std::size_t kMany = 32;
  std::size_t size = 0;
  for (const auto& requirement : filter.labels.requirements()) size += 1 + requirement.values.size();
  if (size < kMany) return;
  filter.also = [packed = std::make_shared<const PackedLabels>(filter.labels), also = std::move(filter.also)](const StoredObject& object) {
    return packed->matches(object.meta.labels()) && (!also || also(object));
  };
  filter.labels = model::Selector::everything();
}

}  // namespace berth::apiserver
