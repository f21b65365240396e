// No document, whatever its shape, makes decoding, defaulting, strategies, validation, conversion or tables fail in any way but by their
// answer.
#include <gtest/gtest.h>

#include "model/schema.h"
#include "model/tables/tables.h"
#include "model/warnings.h"

namespace berth::model {
namespace {

using json::Value;

/// A document with something in every field of the type, a few levels deep.
Value sample(const TypeRef& ref, int depth) {
  using Kind = TypeRef::Kind;
  switch (ref.kind) {
    case Kind::kInt32:
    case Kind::kInt64:
    case Kind::kDouble:
    case Kind::kIntOrString:
      return 1;
    case Kind::kBool:
      return true;
    case Kind::kQuantity:
      return "1";
    case Kind::kTime:
      return "2026-01-01T00:00:00Z";
    case Kind::kMicroTime:
      return "2026-01-01T00:00:00.000000Z";
    case Kind::kBytes:
      return "YQ==";
    case Kind::kString:
      return "a";
    case Kind::kList:
      return depth == 0 ? Value(json::Array()) : Value(json::Array{sample(*ref.element, depth - 1)});
    case Kind::kMap:
      return depth == 0 ? Value(json::Object()) : Value(json::Object{{"k", sample(*ref.element, depth - 1)}});
    case Kind::kStruct: {
      json::Object out;
      if (depth > 0)
        for (const FieldDef& field : ref.type->fields) out[field.name] = sample(field.ref, depth - 1);
      return out;
    }
    case Kind::kAny:
      break;
  }
  return json::Object();
}

void run_everything(const KindInfo& kind, Value doc) {
  Value copy = doc;
  DecodeReport report;
  const bool decoded = decode(kind, copy, report).has_value();
  (void)validate_create(kind, doc);
  (void)table_row(kind, doc, TimePoint(), IncludeObject::kMetadata);
  if (!decoded || !copy.is_object()) return;
  const Value before = copy;
  apply_defaults(kind, copy);
  (void)validate_create(kind, copy);
  (void)validate_update(kind, before, copy, "");
  (void)validate_update(kind, copy, before, "");
  (void)validate_update(kind, copy, before, "status");
  Value updated = copy;
  prepare_for_update(kind, before, updated, "");
  updated = copy;
  prepare_for_update(kind, before, updated, "status");
  prepare_for_create(kind, copy);
  for (const KindInfo& other : all_kinds())
    if (other.kind == kind.kind && other.storage_group == kind.storage_group) {
      Value converted = copy;
      convert(kind, other, converted);
      convert(other, kind, converted);
    }
}

/// Puts each of `strange` in the place of every value below `node`, one at a time.
void mutate(const KindInfo& kind, Value& root, Value& node, int depth) {
  static const std::vector<Value> strange = {nullptr,
                                             0,
                                             -1,
                                             "",
                                             "\xff",
                                             json::Array(),
                                             json::Array{nullptr},
                                             json::Array{json::Array()},
                                             json::Object(),
                                             json::Object{{"", nullptr}},
                                             true,
                                             1e300};
  const Value saved = node;
  for (const Value& value : strange) {
    node = value;
    run_everything(kind, root);
  }
  node = saved;
  if (depth == 0) return;
  if (node.is_object()) {
    for (auto& member : node.get_object()) mutate(kind, root, member.value(), depth - 1);
  } else if (node.is_array()) {
    for (Value& item : node.get_array()) mutate(kind, root, item, depth - 1);
  }
}

TEST(Robustness, StrangeValuesInEveryPlace) {
  for (const KindInfo& kind : all_kinds()) {
    SCOPED_TRACE(kind.kind);
    Value doc = sample({TypeRef::Kind::kStruct, type_of(kind), nullptr}, 4);
    run_everything(kind, doc);
    mutate(kind, doc, doc, 3);
  }
}

TEST(Robustness, FullDocumentsDecode) {
  for (const KindInfo& kind : all_kinds()) {
    Value doc = sample({TypeRef::Kind::kStruct, type_of(kind), nullptr}, 7);
    DecodeReport report;
    const auto decoded = decode(kind, doc, report);
    EXPECT_TRUE(decoded.has_value()) << kind.kind << ": " << decoded.error().sentence();
    EXPECT_TRUE(report.unknown_fields.empty()) << kind.kind;
    run_everything(kind, doc);
  }
}

/// Gives every string below `node` a number, so that elements of a list differ.
void number(Value& node, std::size_t i) {
  if (node.is_string()) node = fmt::format("{}{}", json::as_view(node), i);
  if (auto* object = node.if_object())
    for (auto& member : *object) number(member.value(), i);
  if (auto* array = node.if_array())
    for (Value& item : *array) number(item, i);
}

/// Makes every list below `node` long, one at a time, of equal elements and of different ones, and looks at what validation costs.
void lengthen(const KindInfo& kind, const Value& root, Value& node, std::size_t length, const std::string& path) {
  if (auto* object = node.if_object())
    for (auto& member : *object) lengthen(kind, root, member.value(), length, path + "." + std::string(member.key()));
  auto* array = node.if_array();
  if (array == nullptr || array->empty()) return;
  const json::Array saved = *array;
  for (const bool are_equal : {true, false}) {
    for (std::size_t i = 1; i < length; ++i) {
      array->push_back(saved[0]);
      if (!are_equal) number(array->back(), i);
    }
    const auto start = std::chrono::steady_clock::now();
    const auto errors = validate_create(kind, root);
    std::size_t bytes = 0;
    for (const auto& error : errors) bytes += error.field.size() + error.value.size() + error.detail.size();
    const std::size_t shown = invalid_object(kind.group, kind.kind, "a", errors).message.size();
    const std::size_t warnings = write_warnings(kind, nullptr, root).size();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_LT(seconds.count(), 4) << kind.kind << path << (are_equal ? " equal" : " different");
    EXPECT_LT(bytes, 20U << 20) << kind.kind << path;
    EXPECT_LT(shown, 80U << 20) << kind.kind << path;
    EXPECT_LE(warnings, length * 12 + 1100) << kind.kind << path;
    *array = saved;
  }
  lengthen(kind, root, (*array)[0], length, path + "[0]");
}

/// What a body of three megabytes can hold must not cost the square of it. BERTH_LIST_LENGTH=30000 shows where it would.
TEST(Robustness, LongListsCostNoMoreThanTheirLength) {
  const char* text = std::getenv("BERTH_LIST_LENGTH");
  const std::size_t length = text == nullptr ? 30 : static_cast<std::size_t>(std::atoi(text));
  for (const KindInfo& kind : all_kinds()) {
    Value doc = sample({TypeRef::Kind::kStruct, type_of(kind), nullptr}, 5);
    lengthen(kind, doc, doc, length, "");
  }
}

TEST(Robustness, ManyEqualPortsDoNotWarnOfEveryPair) {
  json::Array ports;
  for (int i = 0; i < 2000; ++i) ports.push_back(json::Object{{"containerPort", 80}, {"protocol", "TCP"}});
  const Value pod = json::Object{{"metadata", json::Object{{"name", "p"}}},
                                 {"spec", json::Object{{"containers", json::Array{json::Object{{"name", "c"}, {"ports", ports}}}}}}};
  const auto warnings = write_warnings(*find_kind("", "v1", "Pod"), nullptr, pod);
  EXPECT_GE(warnings.size(), 200U);
  EXPECT_LE(warnings.size(), 1100U);
}

TEST(Robustness, FindingsEndSomewhere) {
  // Each of a quota's scopes is refused for each of its resources, and every finding shows all scopes.
  json::Array scopes;
  json::Object hard;
  for (int i = 0; i < 3000; ++i) scopes.push_back("BestEffort");
  for (const char* name : {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}) hard[name] = "1";
  const Value quota = json::Object{{"metadata", json::Object{{"name", "q"}, {"namespace", "a"}}},
                                   {"spec", json::Object{{"hard", hard}, {"scopes", scopes}}}};
  const auto errors = validate_create(*find_kind("", "v1", "ResourceQuota"), quota);
  std::size_t bytes = 0;
  for (const auto& error : errors) bytes += error.value.size();
  EXPECT_GE(errors.size(), 5U);
  EXPECT_LT(bytes, 400U << 10);
}

TEST(Robustness, DefaultingIsIdempotent) {
  for (const KindInfo& kind : all_kinds()) {
    Value doc = sample({TypeRef::Kind::kStruct, type_of(kind), nullptr}, 6);
    DecodeReport report;
    ASSERT_TRUE(decode(kind, doc, report).has_value()) << kind.kind;
    apply_defaults(kind, doc);
    Value again = doc;
    apply_defaults(kind, again);
    EXPECT_TRUE(json::equal(doc, again)) << kind.kind;
  }
}

}  // namespace
}  // namespace berth::model
