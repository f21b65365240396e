// Plans as documents, and as lines for people.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::pools {

struct Catalogue;
struct ConsolidationInput;
struct ConsolidationPlan;
struct NewClaim;
struct NodePool;
struct ProvisionPlan;

/// "0.0416 USD".
std::string money(double amount, std::string_view currency);

json::Object to_json(const NewClaim& claim, const std::vector<NodePool>& pools);
/// {"nodeClaims", "onExistingNodes", "refused", "currency", "priced", "pricePerHour", "firstFitPricePerHour", "lowerBoundPerHour"}; `pools`
/// are those of the input.
json::Object to_json(const ProvisionPlan& plan, const std::vector<NodePool>& pools, const Catalogue& catalogue);
json::Object to_json(const ConsolidationPlan& plan, const ConsolidationInput& input);

/// Of `nodeClaims`: a line for those that are alike, with their number.
std::string claim_lines(const json::Array& claims, std::string_view currency, std::string_view indent);
/// Of a plan's document: what comes, what it costs, who gets nothing.
std::string provision_text(const json::Value& plan);
/// Of a plan's document and how many nodes were looked at.
std::string consolidation_text(const json::Value& plan);
/// Why it stays, or what becomes of it; empty: no pool's node is called so.
std::string node_text(const json::Value& consolidation, std::string_view node);

}  // namespace berth::pools
