// Validation pieces shared by the kinds, for src/model and for whoever brings kinds of his own; everybody else calls validate_create and
// validate_update (schema.h).
// Kubernetes: pkg/apis/*/validation, apimachinery/pkg/api/validation, apimachinery/pkg/util/validation.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/json.h"
#include "model/api_status.h"
#include "model/kinds.h"

namespace berth::model::validation {

using json::Value;

/// A place in a document, linked on the stack; rendered only when something is wrong there. A path points to its parent: name every step
/// that must outlive its expression (`const Path a = at / "x"; const Path b = a / "y";`, never `const Path b = at / "x" / "y";`).
class Path {
 public:
  explicit Path(std::string_view key) : key_(key) {}
  Path(const Path& parent, std::string_view key) : parent_(&parent), key_(key) {}
  Path(const Path& parent, std::size_t index) : parent_(&parent), index_(index), is_index_(true) {}
  /// A map's key: `labels[app]` is not how Kubernetes writes it for maps under Key(); this is "parent[key]".
  static Path map_key(const Path& parent, std::string_view key) {
    Path out(parent, key);
    out.is_key_ = true;
    return out;
  }
  [[nodiscard]] Path operator/(std::string_view key) const { return Path(*this, key); }
  [[nodiscard]] Path operator[](std::size_t index) const { return Path(*this, index); }
  [[nodiscard]] std::string text() const;

 private:
  const Path* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
  bool is_index_ = false, is_key_ = false;
};

/// Collects findings, up to 256 KiB of text: a small body can have as many as the square of its length.
class Errors {
 public:
  void required(const Path& at, std::string_view detail = {});
  /// A finding for each sentence; line feeds stand between them.
  void invalid(const Path& at, const Value& value, std::string_view sentences);
  void invalid(const Path& at, std::string_view value, std::string_view sentences);
  void invalid(const Path& at, const char* value, std::string_view sentences) { invalid(at, std::string_view(value), sentences); }
  /// Of a place whose value is not shown.
  void invalid_here(const Path& at, std::string_view sentence) { add(FieldError::Type::kInvalid, at, "", sentence); }
  void duplicate(const Path& at, const Value& value, std::string_view detail = {});
  void forbidden(const Path& at, std::string_view detail);
  void not_found(const Path& at, const Value& value, std::string_view detail = {});
  void internal(const Path& at, std::string_view problem);
  void too_long(const Path& at, std::size_t limit);
  void too_many(const Path& at, std::size_t actual, std::size_t limit);
  /// `Unsupported value: "x": supported values: "a", "b"`
  void not_supported(const Path& at, std::string_view value, const std::vector<std::string_view>& supported);
  /// As above for a value that is no string.
  void not_supported_value(const Path& at, const Value& value, const std::vector<std::string_view>& supported);
  /// A finding of a kind that speaks words of its own.
  void add(FieldError finding) {
    if (is_full()) return;
    text_bytes_ += finding.field.size() + finding.value.size() + finding.detail.size();
    list_.push_back(std::move(finding));
  }
  FieldErrors take() { return std::move(list_); }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  /// Nothing more is taken: no refusal is longer than 256 KiB, beyond which one finding may go.
  [[nodiscard]] bool is_full() const { return text_bytes_ > (256U << 10); }

 private:
  void add(FieldError::Type type, const Path& at, std::string value, std::string_view detail);
  FieldErrors list_;
  std::size_t text_bytes_ = 0;
};

// ---- names and strings; empty: fine, otherwise Kubernetes' sentences, a line each
std::string check_dns1123_label(std::string_view text);
std::string check_dns1123_subdomain(std::string_view text);
/// A subdomain whose labels may have underscores, as in service discovery.
std::string check_underscored_subdomain(std::string_view text);
std::string check_dns1035_label(std::string_view text);
std::string check_qualified_name(std::string_view text);
std::string check_label_value(std::string_view text);
std::string check_config_map_key(std::string_view text);
std::string check_env_name(std::string_view text);
std::string check_path_segment(std::string_view text);
std::string check_port_number(std::int64_t port);
std::string check_port_name(std::string_view text);
bool is_ip(std::string_view text);
inline constexpr std::string_view kIpText = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
inline constexpr std::string_view kCidrText = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
/// The string, or nothing where the value is of another type.
inline std::string_view text_of(const json::Value& value) { return value.is_string() ? json::as_view(value) : std::string_view(); }

inline constexpr std::string_view kNegative = "must be greater than or equal to 0";
inline constexpr std::string_view kImmutable = "field is immutable";

void object_meta(const KindInfo& kind, const Value& doc, Errors& errors);
void object_meta_update(const Value& old, const Value& doc, Errors& errors);
void labels(const Value& map, const Path& at, Errors& errors);
void annotations(const Value& map, const Path& at, Errors& errors);
/// A metav1.LabelSelector.
void label_selector(const Value& selector, const Path& at, Errors& errors);
void non_negative(const Value& object, std::string_view key, const Path& at, Errors& errors);
/// Int or percentage of 0 or more.
void int_or_percent(const Value& value, const Path& at, Errors& errors);
/// Findings when the two differ. `type`: of the struct or list that is shown, where it is one.
void immutable(const Value& old, const Value& doc, json::Path where, const Path& at, Errors& errors, std::string_view type = {});
/// What a metav1.LabelSelector looks like in a message.
Value shown_selector(const Value* selector);
/// What a template's labels look like in one.
Value shown_labels(const Value* labels);
void resource_list(const Value& holder, const Path& at, Errors& errors);

// ---- kinds
/// Whose spec it is.
struct PodOwner {
  bool is_pod = true;  ///< Not a template.
  std::string_view name = {};
  bool is_mirror = false;  ///< Of a static pod.
};
void pod_spec(const Value& spec, const PodOwner& owner, const Path& at, Errors& errors);
void pod_template(const Value& owner_spec, const Path& at, Errors& errors);
void pod(const Value& doc, Errors& errors);
void pod_update(const Value& old, const Value& doc, std::string_view subresource, Errors& errors);
/// What pods/ephemeralcontainers and pods/resize allow (ValidatePodEphemeralContainersUpdate, ValidatePodResize).
void ephemeral_containers_update(const Value& old, const Value& doc, Errors& errors);
void pod_resize(const Value& old, const Value& doc, Errors& errors);
/// What controllers and nodes may write into a status.
void pod_status(const Value& old, const Value& doc, Errors& errors);
/// Whether that, or what is prepared before it, looks at the spec: for these two, whose spec is the same and may be left out.
bool pod_status_reads_spec(const Value& old, const Value& doc);
void job_status(const Value& old, const Value& doc, Errors& errors);
/// How two internal forms differ: a unified diff of their indented JSON, as Kubernetes shows it where an update is forbidden.
std::string difference(const Value& before, const Value& after);
void device_class(const Value& doc, Errors& errors);
void resource_claim(const Value& doc, Errors& errors);
void resource_claim_template(const Value& doc, Errors& errors);
void resource_claim_status(const Value& old, const Value& doc, Errors& errors);
/// "example.com/gpu": counted whole, of no part of Kubernetes itself.
bool is_extended_resource(std::string_view name);
/// What nodes, quotas and ranges may name without a domain.
bool is_standard_resource(std::string_view name);
/// The standard resources that a quota may bound.
bool is_quota_resource(std::string_view name);
void tolerations(const Value& spec, const Path& at, Errors& errors);
void affinity(const Value& affinity, const Path& at, Errors& errors);
void node_selector(const Value& selector, const Path& at, Errors& errors);
/// The volumes that are in order, by name: what containers may mount.
using VolumeNames = std::map<std::string_view, const Value*>;
VolumeNames volumes(const Value& spec, std::string_view pod_name, bool is_pod, const Path& spec_at, Errors& errors);
/// volumeMounts and volumeDevices of one container.
void mounts(const VolumeNames& volumes, const Value& container, const Path& container_at, Errors& errors);
/// env and envFrom of one container.
void environment(const Value& container, const Path& container_at, Errors& errors);
/// The first and the last index of "1" or "3-5" below `completions`; what is wrong with it.
Expected<std::pair<std::int64_t, std::int64_t>, std::string> index_interval(std::string_view part, std::int64_t completions);
/// How many indexes "1,3-5" names below `completions`; what is wrong with it.
Expected<std::int64_t, std::string> count_indexes(std::string_view text, std::int64_t completions);
/// The names of a quota's resources, and what may be counted of them, in one of its lists.
void quota_amounts(const Value& doc, json::Path list, const Path& at, Errors& errors);
/// The downward API's references; `allowed` are the field paths that this place can give.
void field_reference(const Value& reference, const std::vector<std::string_view>& allowed, const Path& at, Errors& errors);
/// `in_volume`: the container has to be named.
void resource_field_reference(const Value& reference, const Path& at, Errors& errors, bool in_volume = false);
void pod_security_context(const Value& spec, const Path& spec_at, Errors& errors);
void container_security_context(const Value& container, bool host_users, const Path& container_at, Errors& errors);
/// windowsOptions of either context.
void windows_options(const Value& context, const Path& context_at, Errors& errors);
/// dnsConfig, hostAliases, readinessGates.
void pod_network(const Value& spec, const Path& at, Errors& errors);
/// A PersistentVolumeSpec; inline, it describes a volume that has no object.
void volume_spec(const Value& spec, bool is_inline, const Path& at, Errors& errors);
/// The spec of a claim, or of a claim template, in `holder`.
void claim_spec(const Value& holder, const Path& at, Errors& errors);
void claim_update(const Value& old, const Value& doc, Errors& errors);
void volume(const Value& doc, Errors& errors);
void volume_update(const Value& old, const Value& doc, Errors& errors);
void csi_driver_name(std::string_view name, const Path& at, Errors& errors);
void storage_class(const Value& doc, Errors& errors);
void csi_node(const Value& doc, Errors& errors);
void csi_node_update(const Value& old, const Value& doc, Errors& errors);
void csi_driver(const Value& doc, Errors& errors);
void csi_driver_update(const Value& old, const Value& doc, Errors& errors);
void storage_parameters(const Value& doc, bool may_be_empty, Errors& errors);
/// The name of a driver in `field`.
void provisioner(const Value& doc, std::string_view field, Errors& errors);
void volume_attachment(const Value& doc, Errors& errors);
void storage_capacity(const Value& doc, Errors& errors);
void volume_attributes_class(const Value& doc, Errors& errors);
void ingress(const Value& doc, Errors& errors);
/// What is asked of a new Ingress beyond `ingress`.
void ingress_create(const Value& doc, Errors& errors);
void ingress_class(const Value& doc, Errors& errors);
void ingress_class_update(const Value& old, const Value& doc, Errors& errors);
void network_policy(const Value& doc, Errors& errors);
/// `old`: null at creation.
void endpoint_slice(const Value* old, const Value& doc, Errors& errors);
void runtime_class(const Value& doc, Errors& errors);
void api_service(const Value& doc, Errors& errors);
/// A CertificateSigningRequest but for the X.509 in it, which the API server reads. `old`: null at creation.
void certificate_request(const Value* old, const Value& doc, std::string_view subresource, Errors& errors);
/// flowcontrol.apiserver.k8s.io; the last is for both kinds' status.
void priority_level(const Value& doc, Errors& errors);
void flow_schema(const Value& doc, Errors& errors);
void flow_control_status(const Value& doc, Errors& errors);
/// status.loadBalancer of a Service or an Ingress.
void load_balancer_status(const Value& old, const Value& doc, bool is_service, Errors& errors);
void service(const Value& doc, Errors& errors);
void service_update(const Value& old, const Value& doc, Errors& errors);
void endpoints(const Value& doc, Errors& errors);
/// Mutating and validating webhook configurations.
void webhooks(const Value& doc, Errors& errors);
void webhook_match_conditions(const Value& hook, const Path& hook_at, Errors& errors);
/// Everything but the expressions, which the API server's admission compiles.
void validating_admission_policy(const Value& doc, Errors& errors);
void policy_binding(const Value& doc, Errors& errors);
void roles(const Value& doc, bool cluster, Errors& errors);
void role_binding(const Value& doc, bool cluster, Errors& errors);
void provisioning_request(const Value& doc, Errors& errors);
void provisioning_request_update(const Value& old, const Value& doc, Errors& errors);
void quota(const Value& doc, Errors& errors);
void quota_update(const Value& old, const Value& doc, Errors& errors);
void limit_range(const Value& doc, Errors& errors);
/// A string member, where there is one, is one of `supported`; an empty one counts as given only with `even_empty`.
void supported_value(const Value& object, std::string_view key, const Path& at, const std::vector<std::string_view>& supported,
                     Errors& errors, bool even_empty = false);
void horizontal_pod_autoscaler(const Value* old, const Value& doc, Errors& errors);
void node(const Value& doc, Errors& errors);
void node_update(const Value& old, const Value& doc, Errors& errors);
/// A Job's spec, and a CronJob's.
/// `selects`: its selector is checked as well; a CronJob's template has none.
void job(const Value& spec, const Path& at, Errors& errors, bool selects = true);
void cron_job(const Value& spec, const Path& at, Errors& errors);
/// `is_new`: in the form of events.k8s.io.
void event(bool is_new, const Value& doc, Errors& errors);
/// What events.k8s.io/v1 asks beyond `event` (ValidateEventCreate, ValidateEventUpdate).
void event_create(const Value& doc, Errors& errors);
void event_update(const Value& old, const Value& doc, Errors& errors);
void config_map(const Value& doc, Errors& errors);
void secret(const Value& doc, Errors& errors);
/// What an immutable one keeps, and a Secret's type.
void config_data_update(const Value& old, const Value& doc, bool is_secret, Errors& errors);
void controller_revision(const Value* old, const Value& doc, Errors& errors);
/// A finalizer of Kubernetes' own kinds: findings of its form at `at`, of its being unknown at `unknown_at`.
void finalizer_name(std::string_view name, const Path& at, const Path& unknown_at, Errors& errors);

}  // namespace berth::model::validation
