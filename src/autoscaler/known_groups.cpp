#include "autoscaler/known_groups.h"

#include <fmt/format.h>

#include "autoscaler/scale_down.h"

namespace berth::autoscaler {

void KnownGroups::make_templates(Pass& pass) {
  NodeTemplates made;
  for (const NodeGroup& group : pass.snapshot.groups) {
    const auto known = templates_.find(group.id);
    made[group.id] = make_template(
        group, pass.snapshot, [&]() -> placement::Trial& { return pass.thought.as_is(); },
        known == templates_.end() ? nullptr : &known->second, pass.now);
  }
  templates_ = std::move(made);
  for (GroupStatus& group : pass.out.status.groups) {
    const NodeTemplate& known = pass.template_of(group.id);
    if (known.node == nullptr) continue;
    const std::string& label = pass.options.accelerator_label;
    group.gpu_resource = gpu_resource_of(*known.node, label);
    const std::string* name = known.node->labels().get(label);
    const bool is_listed = pass.options.gpu_types.empty() || name == nullptr || pass.options.gpu_types.contains(*name);
    if (!group.gpu_resource.empty()) group.gpu_name = name == nullptr || name->empty() ? "generic" : is_listed ? *name : "not-listed";
  }
}

void KnownGroups::tell_of_gone(Pass& pass) {
  std::map<std::string, std::size_t> now;
  for (const NodeGroup& group : pass.snapshot.groups) now[group.id] = group.instances.size();
  for (const auto& [id, nodes] : sizes_) {
    if (pass.snapshot.left_alone.contains(id)) now.try_emplace(id, nodes);
    if (!now.contains(id))
      pass.note({}, {}, true, "NodeGroupGone",
                fmt::format("Node group {} is gone or no longer scaled: its {} machines are left alone", id, nodes));
  }
  sizes_ = std::move(now);
}

}  // namespace berth::autoscaler
