// PodTemplates.
#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"

namespace berth::model::kinds {
namespace {

Array pod_template_cells(const Value& o, TimePoint) {
  const auto [names, images] = tables::containers_and_images(get_array(o, {"template", "spec", "containers"}));
  return {name_of(o), names, images, tables::map_text(get_object(o, {"template", "metadata", "labels"}))};
}

void check_pod_template(const Value& doc, Errors& errors) { validation::pod_template(doc, Path(""), errors); }

}  // namespace

KindInfo pod_template() {
  return Record("", "v1", "PodTemplate", "podtemplates")
      .generation()
      .does({.form = Form{.defaults = defaults::pod_template},
             .strategy = kDefault,
             .rules = Rules{.create = check_pod_template,
                            .update = in_turn(check_pod_template),
                            .warnings = [](const Value*, const Value& doc,
                                           Sentences& out) { template_warnings(doc, {"template"}, Path("template"), out); }},
             .printer = Printer{{{"Name"}, {"Containers"}, {"Images"}, {"Pod Labels"}}, pod_template_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
