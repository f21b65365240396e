// ResourceQuota: what a write adds is booked in the quotas' status before the write is committed, by compare-and-swap, so that concurrent
// writes never exceed a quota together (plugin/pkg/admission/resourcequota). A booking whose write then fails is given back by the quota
// controller's recount.
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"
#include "apiserver/cache/object_codec.h"
#include "model/quota_usage.h"

namespace berth::apiserver {
namespace {

using model::Quantity;

/// Quotas booked one after the other for one request.
struct Booking {
  std::string ns;
  ResourceAmounts delta;
  std::vector<std::string> quota_names;
  std::size_t next = 0;
  int attempts = 0;
  const AdmissionRequest* request = nullptr;
  AdmitDone done;
};

constexpr int kMaxBookingAttempts = 100;  ///< Per quota; every failed attempt means that another request succeeded.

std::string render(const ResourceAmounts& amounts, const std::set<std::string>& names) {
  std::string out;
  for (const auto& name : names) {
    const auto found = amounts.find(name);
    out += (out.empty() ? "" : ",") + name + "=" + (found == amounts.end() ? std::string("0") : found->second.to_string());
  }
  return out;
}

class ResourceQuota final : public AdmissionPlugin {
 public:
  explicit ResourceQuota(const AdmissionContext& context)
      : cache_(context.cache),
        quotas_(context.mirror("", "resourcequotas")),
        device_classes_(context.mirror("resource.k8s.io", "deviceclasses")),
        offload_(context.offload) {}
  [[nodiscard]] std::string_view name() const override { return "ResourceQuota"; }

  [[nodiscard]] bool may_wait() const override { return true; }
  /// What it books, it books of each. Of other namespaces' quotas, whose use is written with every pod there, nothing counts.
  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) override {
    if (!applies(request)) return true;
    circumstances.add([this, ns = request.ns] { return quotas_.empty(ns) ? 0U : 1U; });
    return quotas_.empty(request.ns);
  }
  void validate_async(const AdmissionRequest& request, AdmitDone done) override {
    if (!applies(request)) return done({});
    const auto quotas = quotas_.list(request.ns);
    if (quotas.empty()) return done({});
    auto booking = std::make_shared<Booking>();
    booking->ns = request.ns;
    booking->request = &request;
    booking->done = std::move(done);
    booking->delta = usage_of(request, request.object);
    if (request.operation == Operation::kUpdate) {
      for (const auto& [resource, amount] : usage_of(request, request.old_object)) booking->delta[resource] -= amount;
      // What an update frees, the controller's recount gives back.
      std::erase_if(booking->delta, [](const auto& entry) { return entry.second.sign() < 0; });
    }
    std::erase_if(booking->delta, [](const auto& entry) { return entry.second.is_zero(); });
    if (booking->delta.empty()) return booking->done({});
    for (const auto& quota : quotas) {
      if (!model::quota_selects(*quota, *request.kind, request.object)) continue;
      if (auto checked = check_complete(request, *quota); !checked) return booking->done(std::move(checked));
      booking->quota_names.emplace_back(json::get_string(*quota, {"metadata", "name"}));
    }
    book_next(std::move(booking));
  }

 private:
  static bool applies(const AdmissionRequest& request) {
    if (request.is("", "pods", "resize")) return request.operation == Operation::kUpdate;
    if (request.ns.empty() || !request.subresource.empty() || request.kind->is_virtual) return false;
    if (request.operation == Operation::kCreate) return true;
    // Otherwise updates can only change what services and claims use.
    return request.operation == Operation::kUpdate && (request.is("", "services") || request.is("", "persistentvolumeclaims"));
  }

  [[nodiscard]] ResourceAmounts usage_of(const AdmissionRequest& request, const json::Value& object) const {
    return model::quota_usage(*request.kind, object, [this](const std::string& name) {
      const auto found = device_classes_.get("", name);
      return found == nullptr ? std::string() : std::string(json::get_string(*found, {"spec", "extendedResourceName"}));
    });
  }

  Admitted check_complete(const AdmissionRequest& request, const json::Value& quota) const {
    std::set<std::string> hard, unknown;
    const auto& used = json::get_object(quota, {"status", "used"});
    // What the quota controller has not taken up yet limits nothing, as in Kubernetes.
    for (const auto& [resource, amount] : json::get_object(quota, {"status", "hard"})) {
      hard.emplace(resource);
      if (!used.contains(resource)) unknown.emplace(resource);
    }
    const std::string name(json::get_string(quota, {"metadata", "name"}));
    if (request.is("", "pods") || request.is("", "pods", "resize")) {
      if (const auto missing = model::missing_requirements(hard, request.object); !missing.empty())
        return std::unexpected(request.forbidden(fmt::format("failed quota: {}: must specify {}", name, fmt::join(missing, "; "))));
    }
    const auto usage = usage_of(request, request.object);
    std::erase_if(unknown, [&](const auto& resource) { return !usage.contains(resource); });
    if (!unknown.empty())
      return std::unexpected(request.forbidden(fmt::format("status unknown for quota: {}, resources: {}", name, fmt::join(unknown, ","))));
    return {};
  }

  void book_next(std::shared_ptr<Booking> booking) {
    for (;; ++booking->next, booking->attempts = 0) {
      if (booking->next == booking->quota_names.size()) return booking->done({});
      const auto key = make_key("", "resourcequotas", booking->ns, booking->quota_names[booking->next]);
      const auto base = cache_.get(key);
      if (base == nullptr) continue;  // Deleted meanwhile: it limits nothing any more.
      auto quota = decode_object(*base);
      auto booked = book(*booking, quota);
      if (!booked) return booking->done(std::unexpected(std::move(booked.error())));
      if (!*booked || booking->request->dry_run) continue;
      if (++booking->attempts > kMaxBookingAttempts)
        return booking->done(std::unexpected(
            booking->request->forbidden(fmt::format("quota {} is too busy, try again", booking->quota_names[booking->next]))));
      auto proposal = proposal_of(*model::find_resource("", "resourcequotas"), quota);
      proposal.expected = base->revision;
      cache_.propose(std::move(proposal), [this, booking](ProposeResult result) {
        if (result) {
          ++booking->next;
          booking->attempts = 0;
        } else if (is_of_storage(result.error())) {
          return booking->done(std::unexpected(model::internal_error("quota usage could not be stored")));
        }
        offload_([this, booking] { book_next(booking); });
      });
      return;
    }
  }

  /// Adds the delta to the quota's usage. False: the quota counts nothing of it. An error when it would exceed what is allowed.
  static model::ApiResult<bool> book(const Booking& booking, json::Value& quota) {
    const auto hard = amounts_of(json::find(quota, {"status", "hard"}));
    auto used = amounts_of(json::find(quota, {"status", "used"}));
    std::set<std::string> exceeded, counted;
    for (const auto& [resource, amount] : booking.delta) {
      const auto limit = hard.find(resource);
      if (limit == hard.end()) continue;
      counted.insert(resource);
      if (amount.sign() > 0 && used[resource] + amount > limit->second) exceeded.insert(resource);
    }
    if (!exceeded.empty())
      return std::unexpected(booking.request->forbidden(
          fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}", json::get_string(quota, {"metadata", "name"}),
                      render(booking.delta, exceeded), render(used, exceeded), render(hard, exceeded))));
    for (const auto& resource : counted) {
      used[resource] += booking.delta.at(resource);
      json::ensure_object(quota, {"status", "used"})[resource] = used[resource].to_string();
    }
    return !counted.empty();
  }

  ObjectCache& cache_;
  Mirror &quotas_, &device_classes_;
  std::function<void(Task)> offload_;
};

}  // namespace

PluginResult make_resource_quota(const AdmissionContext& context) { return std::make_unique<ResourceQuota>(context); }

}  // namespace berth::apiserver
