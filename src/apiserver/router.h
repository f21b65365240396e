// From the request that may run to the verb: which kind, in which form, by whom it is answered.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/aggregation/aggregator.h"
#include "apiserver/pages/own_pages.h"
#include "apiserver/reads/reads.h"
#include "apiserver/relays/node_proxy.h"
#include "apiserver/writes/pipeline.h"

namespace berth::apiserver {

/// Thread-safe once the mounts are made. What it refers to outlives it.
class Router {
 public:
  Router(Reads& reads, WritePipeline& writes, NodeProxy& nodes, OwnPages& pages, aggregation::Aggregator& aggregator)
      : ground_(writes.ground),
        respond_(writes.respond),
        reads_(reads),
        nodes_(nodes),
        writes_(writes),
        pages_(pages),
        aggregator_(aggregator) {}

  /// ApiServer's, of the same names.
  void mount(std::string prefix, std::shared_ptr<net::Handler> handler, bool anonymous);
  void mount_group_version(std::string group, std::string version, std::shared_ptr<net::Handler> handler);

  /// Whether a handler was mounted there, which then has the request; those for everybody, or the others.
  bool serve_mounted(const RequestPtr& request, bool anonymous);
  /// Leads an authorised request to whoever answers it.
  void dispatch(const RequestPtr& request);

 private:
  struct Mount {
    std::string prefix;
    std::shared_ptr<net::Handler> handler;
    bool anonymous = false;
  };
  void route_resource(const RequestPtr& request);
  void route_subresource(const RequestPtr& request);

  const Ground& ground_;
  Responder& respond_;
  Reads& reads_;
  NodeProxy& nodes_;
  WritePipeline& writes_;
  OwnPages& pages_;
  aggregation::Aggregator& aggregator_;
  std::vector<Mount> mounts_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<net::Handler>> mounted_groups_;
};

}  // namespace berth::apiserver
