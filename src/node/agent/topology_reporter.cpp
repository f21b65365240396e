#include "node/agent/topology_reporter.h"

#include "base/log.h"

namespace berth::node::agent {

void TopologyReporter::tell(numa::TopologyReport report) {
  if (clock_.now() < not_before_) return;
  report.node_name = node_name_;
  const json::Value document = numa::topology_document(report);
  std::string text = json::serialize(document);
  if (text == told_) return;
  told_ = std::move(text);
  client_.patch(numa::kNodeTopologies, "", node_name_, client::PatchType::kApply, document,
                lifeline_.guard([this](model::ApiResult<json::Value> result) {
                  if (result) return;
                  told_.clear();
                  not_before_ = clock_.now() + std::chrono::minutes(1);
                  if (std::exchange(has_warned_, true)) return;
                  if (result.error().code == 404)
                    log::info("node", "the API has no NodeResourceTopologies: schedulers do not know the NUMA nodes of this node");
                  else
                    log::warning("node", "NodeResourceTopology: {}", result.error().message);
                }));
}

}  // namespace berth::node::agent
