#include "net/pprof.h"

#include <unordered_map>

#include "base/wire.h"
#include "net/exchange.h"

namespace berth::net {
namespace {

/// The few forms of protobuf that a profile needs.
class ProtoText {
 public:
  void varint(std::uint64_t value) { wire::append_varint(text_, value); }
  void number(int field, std::uint64_t value) {
    if (value != 0) wire::append_number(text_, field, value);
  }
  void bytes(int field, std::string_view value) { wire::append_field(text_, field, value); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class Strings {
 public:
  std::uint64_t index(const std::string& text) {
    const auto [found, is_new] = indexes_.try_emplace(text, all_.size());
    if (is_new) all_.push_back(text);
    return found->second;
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_{""};
  std::unordered_map<std::string, std::uint64_t> indexes_{{"", 0}};
};

/// A return address stands behind its call, perhaps in the next function.
std::uintptr_t call_at(const std::vector<std::uintptr_t>& stack, std::size_t at) { return at == 0 ? stack[at] : stack[at] - 1; }

}  // namespace

std::string pprof_of(const CpuProfile& profile, const Symbols& symbols, std::chrono::nanoseconds taken_at) {
  constexpr std::uint64_t kPeriod = 1'000'000'000 / CpuProfile::kSamplesPerSecond;
  ProtoText out;
  Strings strings;
  const auto value_type = [&](int field, const char* type, const char* unit) {
    ProtoText pair;
    pair.number(1, strings.index(type));
    pair.number(2, strings.index(unit));
    out.bytes(field, pair.text());
  };
  value_type(1, "samples", "count");
  value_type(1, "cpu", "nanoseconds");
  std::unordered_map<std::uintptr_t, std::uint64_t> locations;
  for (const auto& [stack, count] : profile.stacks) {
    ProtoText ids, values, sample;
    for (std::size_t at = 0; at < stack.size(); ++at)
      ids.varint(locations.try_emplace(call_at(stack, at), locations.size() + 1).first->second);
    values.varint(count);
    values.varint(count * kPeriod);
    sample.bytes(1, ids.text());
    sample.bytes(2, values.text());
    out.bytes(2, sample.text());
  }
  for (std::size_t i = 0; i < symbols.mappings().size(); ++i) {
    const auto& mapping = symbols.mappings()[i];
    ProtoText text;
    text.number(1, i + 1);
    text.number(2, mapping.start);
    text.number(3, mapping.end);
    text.number(4, mapping.offset);
    text.number(5, strings.index(mapping.file));
    text.number(7, 1);
    out.bytes(3, text.text());
  }
  std::unordered_map<std::string, std::uint64_t> functions;
  for (const auto& [address, id] : locations) {
    const auto name = symbols.name_of(address);
    const auto [function, is_new] = functions.try_emplace(name, functions.size() + 1);
    ProtoText line, location;
    line.number(1, function->second);
    location.number(1, id);
    for (std::size_t i = 0; i < symbols.mappings().size(); ++i)
      if (address >= symbols.mappings()[i].start && address < symbols.mappings()[i].end) location.number(2, i + 1);
    location.number(3, address);
    location.bytes(4, line.text());
    out.bytes(4, location.text());
    if (!is_new) continue;
    ProtoText text;
    text.number(1, function->second);
    text.number(2, strings.index(name));
    text.number(3, strings.index(name));
    out.bytes(5, text.text());
  }
  value_type(11, "cpu", "nanoseconds");
  for (const auto& text : strings.all()) out.bytes(6, text);
  out.number(9, static_cast<std::uint64_t>(taken_at.count()));
  out.number(10, static_cast<std::uint64_t>(profile.duration.count()));
  out.number(12, kPeriod);
  const auto packed = gzip({make_bytes(std::string(out.text()))});
  return packed == nullptr ? std::string() : *packed;
}

std::string folded_stacks(const CpuProfile& profile, const Symbols& symbols) {
  std::map<std::string, std::size_t> lines;
  for (const auto& [stack, count] : profile.stacks) {
    std::string line;
    for (auto at = stack.size(); at-- > 0;) {
      auto name = symbols.name_of(call_at(stack, at));
      std::ranges::replace(name, ';', ':');
      line.append(line.empty() ? "" : ";").append(name);
    }
    lines[line] += count;
  }
  std::string out;
  for (const auto& [line, count] : lines) fmt::format_to(std::back_inserter(out), "{} {}\n", line, count);
  return out;
}

}  // namespace berth::net
