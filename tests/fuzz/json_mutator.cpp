#include "tests/fuzz/json_mutator.h"

#include <limits>

namespace berth::fuzz {
namespace {

std::size_t below(Random& random, std::size_t limit) { return limit == 0 ? 0 : random() % limit; }

/// Values that readers of numbers, quantities, times, names, addresses and selectors have an opinion about.
const json::Value& odd_value(Random& random) {
  static const json::Array kValues = [] {
    json::Array values{nullptr, true, false, 0, 1, -1, 2, 10, 65535, 65536, 0.5, -0.25, 1e300, 5e-324, json::Object(), json::Array()};
    values.emplace_back(std::numeric_limits<std::int32_t>::max());
    values.emplace_back(std::int64_t{1} << 31);
    values.emplace_back(std::numeric_limits<std::int64_t>::max());
    values.emplace_back(std::numeric_limits<std::int64_t>::min());
    values.emplace_back(std::numeric_limits<std::uint64_t>::max());
    for (const char* text : {"",
                             "a",
                             "A_b!",
                             "-",
                             ".",
                             "..",
                             "*",
                             "/",
                             "a/b",
                             "a/b/c",
                             "x.y/z",
                             "0",
                             "-1",
                             "+1",
                             "1Gi",
                             "100m",
                             "0.0001",
                             "1e3",
                             "1e400",
                             "-5Gi",
                             "9223372036854775807",
                             "9223372036854775808",
                             "1E",
                             "NaN",
                             "1n",
                             "100%",
                             "-1%",
                             "0%",
                             "101%",
                             "1h",
                             "-1h",
                             "9999999999h",
                             "1h1",
                             "2026-01-02T03:04:05Z",
                             "2026-01-02T03:04:05.123456Z",
                             "0001-01-01T00:00:00Z",
                             "9999-12-31T23:59:59Z",
                             "2026-13-01T00:00:00Z",
                             "10.0.0.1",
                             "10.96.0.300",
                             "::1",
                             "::ffff:10.0.0.1",
                             "0.0.0.0/0",
                             "10.0.0.0/33",
                             "fd00::/8",
                             "In",
                             "NotIn",
                             "Exists",
                             "DoesNotExist",
                             "Gt",
                             "Lt",
                             "Equal",
                             "NoSchedule",
                             "NoExecute",
                             "PreferNoSchedule",
                             "Always",
                             "Never",
                             "OnFailure",
                             "IfNotPresent",
                             "TCP",
                             "SCTP",
                             "ClusterIP",
                             "None",
                             "ExternalName",
                             "NodePort",
                             "Recreate",
                             "RollingUpdate",
                             "OnDelete",
                             "Orphan",
                             "Indexed",
                             "Delete",
                             "Retain",
                             "ScheduleAnyway",
                             "DoNotSchedule",
                             "kubernetes.io/hostname",
                             "topology.kubernetes.io/zone",
                             "cpu",
                             "memory",
                             "pods",
                             "ephemeral-storage",
                             "hugepages-2Mi",
                             "example.com/gpu",
                             "requests.cpu",
                             "default",
                             "kube-system",
                             "system-node-critical",
                             "0 0 * * *",
                             "* * * * *",
                             "@every 1s",
                             "TZ=UTC 0 0 * * *",
                             "true",
                             "null",
                             "self.x",
                             "object.spec",
                             "\xc3\xa9",
                             "\xf0\x9f\x98\x80",
                             "a\nb",
                             "$(X)"})
      values.emplace_back(text);
    values.emplace_back(std::string("a\0b", 3));
    values.emplace_back(std::string(64, 'a'));
    values.emplace_back(std::string(254, 'a'));
    values.emplace_back(std::string(5000, 'x'));
    values.emplace_back(json::Array{nullptr});
    values.emplace_back(json::Array{json::Array()});
    values.emplace_back(json::Array{json::Object()});
    values.emplace_back(json::Object{{"", ""}});
    values.emplace_back(json::Object{{"a", nullptr}});
    values.emplace_back(json::Object{{"a", "b"}, {"x.y/z", ""}});
    return values;
  }();
  return kValues[below(random, kValues.size())];
}

/// Every value below `root`, itself included.
void collect(json::Value& root, std::vector<json::Value*>& out) {
  out.push_back(&root);
  if (auto* object = root.if_object())
    for (auto& member : *object) collect(member.value(), out);
  if (auto* array = root.if_array())
    for (auto& element : *array) collect(element, out);
}

json::Value* any_of(std::vector<json::Value*>& all, Random& random) { return all[below(random, all.size())]; }

/// A value of the donor, by preference one that stands under the same key.
json::Value from_donor(const json::Value& donor, std::string_view key, Random& random) {
  json::Value copy = donor;
  std::vector<json::Value*> all;
  collect(copy, all);
  std::vector<json::Value*> same;
  for (auto* value : all)
    if (auto* object = value->if_object())
      for (auto& member : *object)
        if (member.key() == key) same.push_back(&member.value());
  return same.empty() ? *any_of(all, random) : *any_of(same, random);
}

void nest(json::Value& value, Random& random) {
  const auto levels = below(random, 8) == 0 ? 150 : 1;
  for (int i = 0; i < levels; ++i)
    value = below(random, 2) == 0 ? json::Value(json::Array{value}) : json::Value(json::Object{{"a", value}});
}

void mutate_object(json::Object& object, const json::Value& donor, Random& random) {
  if (object.empty()) {
    object.emplace(below(random, 2) == 0 ? "a" : "name", odd_value(random));
    return;
  }
  auto member = object.begin() + static_cast<std::ptrdiff_t>(below(random, object.size()));
  const std::string key(member->key());
  switch (below(random, 7)) {
    case 0:
      object.erase(member);
      return;
    case 1: {
      json::Value moved = member->value();
      object.erase(member);
      const auto& name = odd_value(random);
      object[name.is_string() ? std::string_view(json::as_view(name)) : std::string_view("unknown")] = std::move(moved);
      return;
    }
    case 2: {
      auto other = object.begin() + static_cast<std::ptrdiff_t>(below(random, object.size()));
      json::Value kept = member->value();
      member->value() = other->value();
      other->value() = std::move(kept);
      return;
    }
    case 3:
    case 4:
      member->value() = from_donor(donor, key, random);
      return;
    case 5: {
      // A field of an object elsewhere: one-of rules meet a second member, templates their owner's fields.
      json::Value copy = donor;
      std::vector<json::Value*> all;
      collect(copy, all);
      if (const auto* from = any_of(all, random)->if_object(); from != nullptr && !from->empty()) {
        const auto it = from->begin() + static_cast<std::ptrdiff_t>(below(random, from->size()));
        object[it->key()] = it->value();
      }
      return;
    }
    default:
      member->value() = odd_value(random);
  }
}

void mutate_array(json::Array& array, const json::Value& donor, Random& random) {
  if (array.empty()) {
    array.push_back(odd_value(random));
    return;
  }
  const auto at = below(random, array.size());
  switch (below(random, 5)) {
    case 0:
      array.erase(array.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    case 1:
      array.push_back(json::Value(array[at]));
      return;
    case 2: {
      if (array.size() > 200) return;
      const json::Value element = array[at];
      for (int i = 0; i < 64; ++i) array.push_back(element);
      return;
    }
    case 3:
      std::swap(array[at], array[below(random, array.size())]);
      return;
    default:
      array[at] = below(random, 2) == 0 ? odd_value(random) : from_donor(donor, {}, random);
  }
}

}  // namespace

void mutate_json(json::Value& root, const json::Value& donor, Random& random) {
  const auto times = 1 + below(random, 4);
  for (std::size_t i = 0; i < times; ++i) {
    std::vector<json::Value*> all;
    collect(root, all);
    json::Value* at = any_of(all, random);
    if (below(random, 20) == 0) {
      nest(*at, random);
    } else if (auto* object = at->if_object()) {
      mutate_object(*object, donor, random);
    } else if (auto* array = at->if_array()) {
      mutate_array(*array, donor, random);
    } else if (auto* text = at->if_string(); text != nullptr && !text->empty() && below(random, 2) == 0) {
      (*text)[below(random, text->size())] = "aA0-./:_ %"[below(random, 10)];
    } else {
      *at = odd_value(random);
    }
  }
}

}  // namespace berth::fuzz
