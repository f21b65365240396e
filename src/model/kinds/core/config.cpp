// ConfigMaps and Secrets.
#include "base/base64.h"
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

Array config_map_cells(const Value& o, TimePoint now) {
  return {name_of(o), get_object(o, {"data"}).size() + get_object(o, {"binaryData"}).size(), age_of(o, now)};
}

Array secret_cells(const Value& o, TimePoint now) {
  return {name_of(o), Value(get_string(o, {"type"})), get_object(o, {"data"}).size(), age_of(o, now)};
}

/// secret.stringData is write-only: it ends up in data, encoded, before anything else looks at the Secret.
void fold_string_data(Object& doc) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const json::Value* found = doc.if_contains("stringData");
  if (found == nullptr || !found->is_object()) return;
  const Object copy = found->get_object();
  Object& data = make_child(doc, "data");
  for (const auto& [key, value] : copy) {
    if (!value.is_string()) continue;
    const std::string_view text = json::as_view(value);
    std::string out;
    for (std::size_t i = 0; i < text.size(); i += 3) {
      std::uint32_t bits = 0;
      for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U);
      for (std::size_t k = 0; k < 4; ++k) out += i + k <= text.size() ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
    }
    data[key] = out;
  }
  doc.erase("stringData");
}

void default_secret(Object& doc) {
  put_string(doc, "type", "Opaque");
  fold_string_data(doc);
}

/// A pair of a certificate and its key is tried as a server would load it; only the first step of that is done here.
void warn_of_secret(const Value& doc, Sentences& out) {
  if (get_string(doc, {"type"}) != "kubernetes.io/tls") return;
  for (const auto& [key, what] : {std::pair("tls.crt", "certificate"), std::pair("tls.key", "key")}) {
    const auto bytes = base64_decode(get_string(doc, {"data", key}));
    if (bytes && bytes->find("-----BEGIN ") != std::string::npos) continue;
    out.push_back(fmt::format("tls: failed to find any PEM data in {} input", what));
    return;
  }
}

}  // namespace

KindInfo config_map() {
  const auto kept = [](const Value& old, const Value& doc, Errors& errors) { validation::config_data_update(old, doc, false, errors); };
  return Record("", "v1", "ConfigMap", "configmaps")
      .shorts({"cm"})
      .does({.form = kDefault,
             .strategy = kDefault,
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create = validation::config_map,
                            .update = in_turn(kept, validation::config_map)},
             .printer = Printer{{{"Name"}, {"Data"}, {"Age"}}, config_map_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = Counted{.by_plural = true}});
}

KindInfo secret() {
  const auto kept = [](const Value& old, const Value& doc, Errors& errors) { validation::config_data_update(old, doc, true, errors); };
  return Record("", "v1", "Secret", "secrets")
      .fields({"type"})
      .does({.form = Form{.defaults = default_secret},
             .strategy = kDefault,
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create = validation::secret,
                            .update = in_turn(kept, validation::secret),
                            .warnings = [](const Value*, const Value& doc, Sentences& out) { warn_of_secret(doc, out); }},
             .printer = Printer{{{"Name"}, {"Type"}, {"Data"}, {"Age"}}, secret_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = Counted{.by_plural = true}});
}

}  // namespace berth::model::kinds
