// What the records of kinds are written with. Within src/model/kinds only.
#pragma once
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "model/defaults.h"
#include "model/features.h"
#include "model/internal_form.h"
#include "model/kind_hooks.h"
#include "model/quantity.h"
#include "model/strategy.h"
#include "model/tables/table_cells.h"
#include "model/tables/tables.h"
#include "model/validation/validation.h"

namespace berth::model::kinds {

using defaults::child;
using defaults::each;
using defaults::list;
using defaults::make_child;
using defaults::put;
using defaults::put_string;
using defaults::string_at;
using json::Array;
using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using json::Object;
using json::Value;
using tables::age_of;
using tables::join;
using tables::name_of;
using tables::or_none;
using tables::or_unset;
using validation::Errors;
using validation::immutable;
using validation::kImmutable;
using validation::kNegative;
using validation::Path;
using Sentences = std::vector<std::string>;

inline const std::vector<std::string> kAllVerbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};

/// A kind's record: what most kinds share is the default, the rest is said. Its hooks come last.
class Record {
 public:
  Record(std::string group, std::string version, std::string kind, std::string plural);
  Record& shorts(std::vector<std::string> names);
  Record& categories(std::vector<std::string> names);
  /// Instead of the kind's name in small letters.
  Record& singular(std::string name);
  Record& cluster();
  Record& subs(std::vector<std::string> names);
  Record& fields(std::vector<std::string> names);
  Record& generation();
  Record& verbs(std::vector<std::string> names);
  Record& stored_as(std::string group, std::string version);
  Record& not_stored();
  Record& gated_by(Feature feature);
  KindInfo does(KindHooks hooks);
  /// For versions that do the same.
  KindInfo does(std::shared_ptr<const KindHooks> hooks);

 private:
  KindInfo info_;
};

/// What Record::gated_by was told.
std::map<Gvk, Feature>& gated_kinds();

/// For versions that do the same.
inline std::shared_ptr<const KindHooks> share(KindHooks hooks) { return std::make_shared<const KindHooks>(std::move(hooks)); }

/// Rules::update that asks one check after the other: each takes (old, doc, errors) or (doc, errors).
template <typename... Checks>
auto in_turn(Checks... checks) {
  return [=](const Value& old, const Value& doc, std::string_view, Errors& errors) {
    const auto ask = [&](const auto& check) {
      if constexpr (std::is_invocable_v<decltype(check), const Value&, const Value&, Errors&>)
        check(old, doc, errors);
      else
        check(doc, errors);
    };
    (ask(checks), ...);
  };
}

/// An array at a path of a document that may have anything else there; null then.
inline Value* find_array(Value& doc, json::Path path) {
  Value* found = json::find(doc, path);
  return found != nullptr && found->is_array() ? found : nullptr;
}

/// Columns of kinds that show when they were made, as Kubernetes shows kinds that it has no printer for.
inline Printer created_at_printer() {
  return {{{"Name"}, {"Created At", 0, "date"}}, [](const Value& o, TimePoint) -> Array {
            return {name_of(o), Value(get_string(o, {"metadata", "creationTimestamp"}))};
          }};
}

}  // namespace berth::model::kinds
