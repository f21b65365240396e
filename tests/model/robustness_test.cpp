// No document, whatever its shape, makes decoding, defaulting, strategies, validation, conversion or tables fail in any way but by their
// answer.
#include <gtest/gtest.h>

#include "model/schema.h"
#include "model/tables.h"

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
    EXPECT_TRUE(decoded.has_value()) << kind.kind << ": " << decoded.error().message;
    EXPECT_TRUE(report.unknown_fields.empty()) << kind.kind;
    run_everything(kind, doc);
  }
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
