#include "base/json_canonical.h"

#include <algorithm>

#include "base/json_quote.h"

namespace berth::json {
namespace {

void append(std::string& out, const Value& value) {
  if (const Object* object = value.if_object()) {
    std::vector<const Object::value_type*> members;
    for (const auto& member : *object) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return a->key() < b->key(); });
    out += '{';
    for (const auto* member : members) {
      quote_to(out, {member->key().data(), member->key().size()});
      out += ':';
      append(out, member->value());
      out += ',';
    }
    out += '}';
  } else if (const Array* array = value.if_array()) {
    out += '[';
    for (const Value& element : *array) {
      append(out, element);
      out += ',';
    }
    out += ']';
  } else {
    serialize_to(out, value);
  }
}

}  // namespace

std::string canonical_text(const Value& value) {
  std::string out;
  append(out, value);
  return out;
}

}  // namespace berth::json
