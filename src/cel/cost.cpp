#include "cel/cost.h"

#include <cmath>

#include "cel/cost_factors.h"
#include "cel/functions.h"
#include "cel/opaque.h"

namespace berth::cel {
namespace {

constexpr std::uint64_t kListCallCost = 1 + kListCost;

std::uint64_t size_of(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::kString: {
      std::uint64_t count = 0;
      for (const char c : v.text()) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
      return count;
    }
    case Value::Kind::kBytes:
      return v.text().size();
    case Value::Kind::kList:
      return v.as_list().size();
    case Value::Kind::kMap:
      return v.as_map().size();
    case Value::Kind::kOptional:
      return v.optional_value() == nullptr ? 1 : size_of(*v.optional_value());
    case Value::Kind::kOpaque:
      // Kubernetes' addresses know their size in bytes.
      if (const auto* ip = as_opaque<IpValue>(v)) return static_cast<std::uint64_t>(ip->bits() / 8);
      if (const auto* cidr = as_opaque<CidrValue>(v)) return static_cast<std::uint64_t>((cidr->prefix + 7) / 8);
      return 1;
    default:
      return 1;
  }
}

std::uint64_t scaled(double size, double factor) { return static_cast<std::uint64_t>(std::ceil(size * factor)); }
std::uint64_t scaled(std::uint64_t size, double factor) { return scaled(static_cast<double>(size), factor); }

std::uint64_t traversal(const Value& v, int depth = 0) {
  if (depth > 100) return 1;
  switch (v.kind()) {
    case Value::Kind::kString:
    case Value::Kind::kBytes:
      return static_cast<std::uint64_t>(static_cast<double>(v.text().size()) * kTraversal);
    case Value::Kind::kList: {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < v.as_list().size(); ++i) sum += traversal(v.as_list().at(i), depth + 1);
      return sum;
    }
    case Value::Kind::kMap: {
      std::uint64_t sum = 0;
      v.as_map().each([&](const Value& key, const Value& value) {
        sum += traversal(key, depth + 1) + traversal(value, depth + 1);
        return true;
      });
      return sum;
    }
    default:
      return 1;
  }
}

std::uint64_t regex_cost(std::uint64_t text, std::uint64_t pattern) {
  return scaled(1.0 + static_cast<double>(text), kTraversal) * scaled(pattern, kRegexPerCharacter);
}

std::uint64_t saturated(double cost) { return cost >= 1.8e19 ? UINT64_MAX : static_cast<std::uint64_t>(cost); }

std::uint64_t self_compare(const Value& v) {
  if (v.kind() != Value::Kind::kList) return 1;
  const auto& list = v.as_list();
  double factor = 2;
  if (list.size() > 0 && (list.at(0).kind() == Value::Kind::kString || list.at(0).kind() == Value::Kind::kBytes)) factor += kTraversal;
  return saturated(static_cast<double>(list.size()) * static_cast<double>(list.size()) * factor) + kListCallCost;
}

/// Costs by overload that libraries brought along; nullopt: none.
std::optional<std::uint64_t> tracked_cost(const Node& call, const std::vector<Value>& args, const Value& result) {
  if (call.overloads.size() != 1) return std::nullopt;
  const std::string_view id = call.overloads[0]->id;
  if (id == "list_slice" || id == "lists_range" || id == "list_reverse") return size_of(result) + kListCallCost;
  if (id == "list_flatten") return size_of(args[0]) + kListCallCost;
  if (id == "list_flatten_int")
    return saturated(static_cast<double>(size_of(args[0])) *
                     static_cast<double>(args[1].kind() == Value::Kind::kInt ? std::max<std::int64_t>(0, args[1].as_int()) : 1)) +
           kListCallCost;
  if (id == "list_distinct" || id.ends_with("_sort")) return self_compare(args[0]);
  if (id.ends_with("_sortByAssociatedKeys")) return self_compare(args[1]);
  if (id.starts_with("list_sets_"))
    return 1 + saturated(static_cast<double>(size_of(args[0])) * static_cast<double>(size_of(args[1])) *
                         (id == "list_sets_equivalent_list" ? 2 : 1));
  return std::nullopt;
}

/// library/cost.go.
std::optional<std::uint64_t> kubernetes_cost(const Node& call, const std::vector<Value>& args, const Value& result) {
  const std::string_view f = call.name;
  const std::string_view id = call.overloads.size() == 1 ? std::string_view(call.overloads[0]->id) : std::string_view();
  if (f == "check") return 350'000;
  if (is_one_of(f, {"serviceAccount",
                    "path",
                    "group",
                    "resource",
                    "subresource",
                    "namespace",
                    "name",
                    "allowed",
                    "reason",
                    "error",
                    "errored",
                    "masked",
                    "prefixLength",
                    "family",
                    "isUnspecified",
                    "isLoopback",
                    "isLinkLocalMulticast",
                    "isLinkLocalUnicast",
                    "isGlobalUnicast",
                    "format.named",
                    "sign",
                    "asInteger",
                    "isInteger",
                    "asApproximateFloat",
                    "isGreaterThan",
                    "isLessThan",
                    "compareTo",
                    "add",
                    "sub",
                    "major",
                    "minor",
                    "patch",
                    "getScheme",
                    "getHostname",
                    "getHost",
                    "getPort",
                    "getEscapedPath",
                    "getQuery"}))
    return 1;
  if ((f == "fieldSelector" || f == "labelSelector") && args.size() >= 2) {
    const auto size = size_of(args[1]);
    return kListCost + scaled(size, kTraversal) + scaled(scaled(size, 0.5), 50.0);
  }
  if (is_one_of(f, {"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})) return traversal(args[0]);
  if (is_one_of(f, {"url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver",
                    "isSemver"}))
    return scaled(size_of(args[0]), kTraversal);
  if (f == "replace" || f == "split" || f == "ip.isCanonical") return scaled(static_cast<double>(size_of(args[0])) * 2, kTraversal);
  if (f == "join") return scaled(static_cast<double>(size_of(result)) * 2, kTraversal);
  if (f == "find" || f == "findAll") return regex_cost(size_of(args[0]), size_of(args[1]));
  if (f == "ip") return id == "cidr_ip" ? 1 : scaled(size_of(args[0]), kTraversal);
  if (f == "containsIP" || f == "containsCIDR") {
    const auto size = size_of(args[0]);
    auto cost = scaled(static_cast<double>(size + size), kTraversal);
    if (f == "containsCIDR") cost += scaled(size, kTraversal) + 1;
    if (id.ends_with("_string")) cost += scaled(size_of(args[1]), kTraversal);
    return cost;
  }
  if (f == "validate" && args.size() >= 2)
    if (const auto* format = as_opaque<FormatValue>(args[0])) return regex_cost(size_of(args[1]), format->max_regex_size);
  return std::nullopt;
}

}  // namespace

std::uint64_t call_cost(const Node& call, const std::vector<Value>& args, const Value& result) {
  if (const auto cost = tracked_cost(call, args, result)) return *cost;
  if (const auto cost = kubernetes_cost(call, args, result)) return *cost;
  const std::string_view id = call.overloads.size() == 1 ? std::string_view(call.overloads[0]->id) : std::string_view();
  if (is_one_of(id, {"starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote", "string_format"}))
    return scaled(size_of(args[0]), kTraversal);
  if (id == "in_list") return size_of(args[1]);
  if (is_one_of(id, {"less_string", "greater_string", "less_equals_string", "greater_equals_string", "less_bytes", "greater_bytes",
                     "less_equals_bytes", "greater_equals_bytes"}))
    return scaled(std::min(size_of(args[0]), size_of(args[1])), kTraversal);
  if (id == "add_string" || id == "add_bytes") return scaled(static_cast<double>(size_of(args[0]) + size_of(args[1])), kTraversal);
  if (id == "matches_string") return regex_cost(size_of(args[0]), size_of(args[1]));
  if (id == "contains_string") return scaled(size_of(args[0]), kTraversal) * scaled(size_of(args[1]), kTraversal);
  return 1;
}

std::uint64_t equality_cost(const Value& a, const Value& b, bool is_equals) {
  if (is_equals && a.kind() == Value::Kind::kOpaque) return 1;
  return scaled(std::min(size_of(a), size_of(b)), kTraversal);
}

std::uint64_t quadratic_cost(const Node& call, const std::vector<Value>& args) {
  if (call.overloads.size() != 1) return 0;
  const std::string_view id = call.overloads[0]->id;
  if (id == "list_distinct" || id.ends_with("_sort") || id.starts_with("list_sets_") || id.ends_with("_sortByAssociatedKeys"))
    return tracked_cost(call, args, Value()).value_or(0);
  return 0;
}

}  // namespace berth::cel
