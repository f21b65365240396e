// LimitRanger: defaults, minima, maxima and ratios of a namespace's LimitRanges for pods and claims (plugin/pkg/admission/limitranger).
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"

namespace berth::apiserver {
namespace {

using model::Quantity;

const Quantity* find(const ResourceAmounts& amounts, std::string_view name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? nullptr : &found->second;
}

class LimitRanger final : public AdmissionPlugin {
 public:
  explicit LimitRanger(const AdmissionContext& context) : ranges_(context.mirror("", "limitranges")) {}
  [[nodiscard]] std::string_view name() const override { return "LimitRanger"; }

  bool add_circumstances(const AdmissionRequest&, Circumstances& circumstances) override {
    circumstances.add([this] { return ranges_.generation(); });
    return true;
  }
  Admitted mutate(AdmissionRequest& request) override {
    if (!is_pod_write(request) || ranges_.empty()) return {};
    std::vector<std::string> notes;
    for (const auto& range : ranges_.list(request.ns)) {
      json::Value defaults = json::Object();
      for (const auto& limit : json::get_array(*range, {"spec", "limits"})) {
        if (json::get_string(limit, {"type"}) != "Container") continue;
        merge_missing(json::ensure_object(defaults, {"limits"}), json::get_object(limit, {"default"}));
        merge_missing(json::ensure_object(defaults, {"requests"}), json::get_object(limit, {"defaultRequest"}));
      }
      for (auto [list, word] : {std::pair{"containers", "container"}, std::pair{"initContainers", "init container"}}) {
        auto* containers = json::find(request.object, {"spec", list});
        if (containers == nullptr || !containers->is_array()) continue;
        for (auto& container : containers->get_array()) apply_defaults(container, word, defaults, notes);
      }
    }
    if (!notes.empty()) {
      std::string text = "LimitRanger plugin set: ";
      for (std::size_t i = 0; i < notes.size(); ++i) text += (i == 0 ? "" : "; ") + notes[i];
      json::ensure_object(request.object, {"metadata", "annotations"})["kubernetes.io/limit-ranger"] = text;
    }
    return {};
  }

  Admitted validate(const AdmissionRequest& request) override {
    const bool is_pod = is_pod_write(request);
    const bool is_claim =
        request.is("", "persistentvolumeclaims") && (request.operation == Operation::kCreate || request.operation == Operation::kUpdate);
    if ((!is_pod && !is_claim) || ranges_.empty()) return {};
    if (json::find(request.old_object, {"metadata", "deletionTimestamp"}) != nullptr) return {};
    for (const auto& range : ranges_.list(request.ns)) {
      std::vector<std::string> errors;
      for (const auto& limit : json::get_array(*range, {"spec", "limits"})) {
        const auto type = json::get_string(limit, {"type"});
        if (is_claim && type == "PersistentVolumeClaim") {
          check(limit, type, amounts_of(json::find(request.object, {"spec", "resources", "requests"})), {}, true, errors);
        }
        if (is_pod && type == "Container") {
          for (std::string_view list : {"containers", "initContainers"})
            for (const auto& container : json::get_array(request.object, {"spec", list}))
              check(limit, type, amounts_of(json::find(container, {"resources", "requests"})),
                    amounts_of(json::find(container, {"resources", "limits"})), false, errors);
        }
        if (is_pod && type == "Pod")
          check(limit, type, containers_total(request.object, "requests"), containers_total(request.object, "limits"), false, errors);
      }
      if (errors.empty()) continue;
      // What several containers break alike is said once.
      std::vector<std::string> distinct;
      for (auto& error : errors)
        if (std::find(distinct.begin(), distinct.end(), error) == distinct.end()) distinct.push_back(std::move(error));
      errors = std::move(distinct);
      if (errors.size() == 1) return std::unexpected(request.forbidden(errors[0]));
      std::string all;
      for (const auto& error : errors) all += (all.empty() ? "" : ", ") + error;
      return std::unexpected(request.forbidden("[" + all + "]"));
    }
    return {};
  }

 private:
  static bool is_pod_write(const AdmissionRequest& request) {
    return (request.is("", "pods") && request.operation == Operation::kCreate) ||
           (request.is("", "pods", "resize") && request.operation == Operation::kUpdate);
  }

  /// What the pod's own containers or the pod as a whole ask for: the runtime's overhead is not the user's to limit.
  static ResourceAmounts containers_total(const json::Value& pod, std::string_view field) {
    if (json::find(pod, {"spec", "overhead"}) == nullptr) return pod_total(pod, field);
    json::Value bare = pod;
    bare.get_object()["spec"].get_object().erase("overhead");
    return pod_total(bare, field);
  }

  static void merge_missing(json::Object& into, const json::Object& from) {
    for (const auto& [key, value] : from)
      if (!into.contains(key)) into[key] = value;
  }

  static void apply_defaults(json::Value& container, std::string_view word, const json::Value& defaults, std::vector<std::string>& notes) {
    if (!container.is_object()) return;
    for (auto [field, singular] : {std::pair{"requests", "request"}, std::pair{"limits", "limit"}}) {
      std::set<std::string> set;
      for (const auto& [resource, amount] : json::get_object(defaults, {field})) {
        if (json::find(container, {"resources", field, std::string_view(resource)}) != nullptr) continue;
        json::ensure_object(container, {"resources", field})[resource] = amount;
        set.emplace(resource);
      }
      if (set.empty()) continue;
      std::string names;
      for (const auto& name : set) names += (names.empty() ? "" : ", ") + name;
      notes.push_back(fmt::format("{} {} for {} {}", names, singular, word, json::get_string(container, {"name"})));
    }
  }

  static void check(const json::Value& limit, std::string_view type, const ResourceAmounts& requests, const ResourceAmounts& limits,
                    bool requests_only, std::vector<std::string>& errors) {
    for (const auto& [resource, least] : amounts_of(json::find(limit, "min"))) {
      const auto head = fmt::format("minimum {} usage per {} is {}", resource, type, least.to_string());
      const auto* request = find(requests, resource);
      const auto* most = find(limits, resource);
      if (request == nullptr) {
        errors.push_back(head + ".  No request is specified");
      } else if (*request < least) {
        errors.push_back(fmt::format("{}, but request is {}", head, request->to_string()));
      } else if (most != nullptr && *most < least) {
        errors.push_back(fmt::format("{}, but limit is {}", head, most->to_string()));
      }
    }
    for (const auto& [resource, most] : amounts_of(json::find(limit, "max"))) {
      const auto head = fmt::format("maximum {} usage per {} is {}", resource, type, most.to_string());
      const auto* request = find(requests, resource);
      const auto* its_limit = find(limits, resource);
      if (requests_only) {
        if (request == nullptr) errors.push_back(head + ".  No request is specified");
        if (request != nullptr && *request > most) errors.push_back(fmt::format("{}, but request is {}", head, request->to_string()));
      } else if (its_limit == nullptr) {
        errors.push_back(head + ".  No limit is specified");
      } else if (*its_limit > most) {
        errors.push_back(fmt::format("{}, but limit is {}", head, its_limit->to_string()));
      } else if (request != nullptr && *request > most) {
        errors.push_back(fmt::format("{}, but request is {}", head, request->to_string()));
      }
    }
    if (requests_only) return;
    for (const auto& [resource, ratio] : amounts_of(json::find(limit, "maxLimitRequestRatio"))) {
      const auto head = fmt::format("{} max limit to request ratio per {} is {}", resource, type, ratio.to_string());
      const auto* request = find(requests, resource);
      const auto* its_limit = find(limits, resource);
      if (request == nullptr || request->is_zero()) {
        errors.push_back(head + ", but no request is specified or request is 0");
      } else if (its_limit == nullptr || its_limit->is_zero()) {
        errors.push_back(head + ", but no limit is specified or limit is 0");
      } else if (its_limit->as_double() / request->as_double() > ratio.as_double()) {
        errors.push_back(fmt::format("{}, but provided ratio is {:f}", head, its_limit->as_double() / request->as_double()));
      }
    }
  }

  Mirror& ranges_;
};

}  // namespace

PluginResult make_limit_ranger(const AdmissionContext& context) { return std::make_unique<LimitRanger>(context); }

}  // namespace berth::apiserver
