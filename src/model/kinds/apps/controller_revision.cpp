// ControllerRevisions.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

Array revision_cells(const Value& o, TimePoint now) {
  std::string controller = "<none>";
  for (const Value& owner : get_array(o, {"metadata", "ownerReferences"})) {
    if (!get_bool(owner, {"controller"})) continue;
    const std::string_view version = get_string(owner, {"apiVersion"});
    const auto slash = version.find('/');
    const std::string group = slash == std::string_view::npos ? "" : fmt::format(".{}", version.substr(0, slash));
    controller = fmt::format("{}{}/{}", get_string(owner, {"kind"}), group, get_string(owner, {"name"}));
  }
  for (char& c : controller) {
    if (c == '/') break;
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return {name_of(o), controller, get_int(o, {"revision"}), age_of(o, now)};
}

}  // namespace

KindInfo controller_revision() {
  return Record("apps", "v1", "ControllerRevision", "controllerrevisions")
      .does({.form = kDefault,
             .strategy = kDefault,
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create = [](const Value& doc, Errors& errors) { validation::controller_revision(nullptr, doc, errors); },
                            .update = in_turn([](const Value& old, const Value& doc, Errors& errors) {
                              validation::controller_revision(&old, doc, errors);
                            })},
             .printer = Printer{{{"Name"}, {"Controller"}, {"Revision"}, {"Age"}}, revision_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

}  // namespace berth::model::kinds
