// FlowSchemas and PriorityLevelConfigurations.
#include "model/flow_control.h"

#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

Array flow_schema_cells(const Value& o, TimePoint now) {
  std::string_view dangling = "?";
  for (const Value& condition : get_array(o, {"status", "conditions"}))
    if (get_string(condition, {"type"}) == "Dangling") dangling = get_string(condition, {"status"});
  const std::string_view method = get_string(o, {"spec", "distinguisherMethod", "type"});
  return {name_of(o),
          Value(get_string(o, {"spec", "priorityLevelConfiguration", "name"})),
          get_int(o, {"spec", "matchingPrecedence"}),
          Value(method.empty() ? "<none>" : method),
          age_of(o, now),
          Value(dangling)};
}

Array priority_level_cells(const Value& o, TimePoint now) {
  const auto number = [&](json::Path path) {
    const Value* value = json::find(o, path);
    return value == nullptr || value->is_null() ? Value("<none>") : *value;
  };
  return {name_of(o),
          Value(get_string(o, {"spec", "type"})),
          number({"spec", "limited", "nominalConcurrencyShares"}),
          number({"spec", "limited", "limitResponse", "queuing", "queues"}),
          number({"spec", "limited", "limitResponse", "queuing", "handSize"}),
          number({"spec", "limited", "limitResponse", "queuing", "queueLengthLimit"}),
          age_of(o, now)};
}

void check_flow_status(const Value&, const Value& doc, Errors& errors) { validation::flow_control_status(doc, errors); }

}  // namespace

std::vector<KindInfo> flowcontrol_group() {
  return {
      Record("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas")
          .cluster()
          .subs({"status"})
          .generation()
          .does({.form = Form{.defaults = flow_control::default_schema},
                 .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
                 .rules = Rules{.metadata_looks = kLooksAtAllAgain,
                                .create = validation::flow_schema,
                                .update = in_turn(validation::flow_schema),
                                .status = check_flow_status},
                 .printer = Printer{{{"Name"}, {"PriorityLevel"}, {"MatchingPrecedence"}, {"DistinguisherMethod"}, {"Age"}, {"MissingPL"}},
                                    flow_schema_cells},
                 .selected = kDefault,
                 .scale = kDefault,
                 .life = kDefault,
                 .counted = kDefault}),
      Record("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations")
          .cluster()
          .subs({"status"})
          .generation()
          .does({.form = Form{.defaults = flow_control::default_level},
                 .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
                 .rules = Rules{.metadata_looks = kLooksAtAllAgain,
                                .create = validation::priority_level,
                                .update = in_turn(validation::priority_level),
                                .status = check_flow_status},
                 .printer =
                     Printer{{{"Name"}, {"Type"}, {"NominalConcurrencyShares"}, {"Queues"}, {"HandSize"}, {"QueueLengthLimit"}, {"Age"}},
                             priority_level_cells},
                 .selected = kDefault,
                 .scale = kDefault,
                 .life = kDefault,
                 .counted = kDefault})};
}

}  // namespace berth::model::kinds
