#include "model/published/descriptions.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/split.h"
#include "model/schema_text.h"

namespace berth::model {
namespace {

/// By "Type" or "Type.field" without the package: the same words serve all versions.
template <typename Said>
using Facts = std::map<std::string, Said, std::less<>>;

const Facts<std::string_view>& sentences() {
  static const auto all = [] {
    Facts<std::string_view> out;
    for (const std::string_view text : descriptions_texts())
      for (const auto line : split(text, '\n'))
        if (const auto colon = line.find(": "); colon != std::string_view::npos) out.emplace(line.substr(0, colon), line.substr(colon + 2));
    return out;
  }();
  return all;
}

const Facts<std::vector<std::string_view>>& enums() {
  static const auto all = [] {
    Facts<std::vector<std::string_view>> out;
    for (Fact& fact : read_facts(enums_texts())) {
      std::ranges::replace(fact.words, R"("")", std::string_view());
      for (const auto field : fact.of) out.emplace(field, fact.words);
    }
    return out;
  }();
  return all;
}

template <typename Said>
Said said_of(const Facts<Said>& facts, std::string_view type, std::string_view field) {
  std::string key(type.substr(type.rfind('.') + 1));
  if (!field.empty()) key.append(".").append(field);
  const auto found = facts.find(key);
  return found == facts.end() ? Said() : found->second;
}

}  // namespace

std::string_view describe(std::string_view type, std::string_view field) {
  const auto own = said_of(sentences(), type, field);
  return own.empty() && !field.empty() ? said_of(sentences(), "", field) : own;
}

std::vector<std::string_view> enum_values(std::string_view type, std::string_view field) { return said_of(enums(), type, field); }

}  // namespace berth::model
