// Usage of nodes as a Prometheus query tells it (pkg/framework/plugins/nodeutilization/usageclients.go).
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "descheduler/snapshot.h"

namespace berth::descheduler {

/// Whole percent by node of samples between 0 and 1, each with its label `instance`. The errors are the original's words.
Result<Amounts> usage_of_samples(const std::vector<std::pair<std::string, double>>& samples);
/// The same of the answer to an instant query (GET /api/v1/query).
Result<Amounts> usage_of_answer(const json::Value& answer);

struct PrometheusAddress {
  std::string url;     ///< As in the policy: http or https, perhaps with a path before the API's.
  std::string token;   ///< Sent as bearer token; empty: none.
  std::string ca_pem;  ///< For https beside the system's own authorities; may be empty.
  int timeout_ms = 30'000;
};

/// What the query says of nodes now. Blocks. The error names the server and what it answered.
Result<Amounts> ask_prometheus(const PrometheusAddress& address, const std::string& query);

/// Why the URL cannot be used, in the original's words; empty when it can.
std::string why_not_prometheus_url(const std::string& url);

}  // namespace berth::descheduler
