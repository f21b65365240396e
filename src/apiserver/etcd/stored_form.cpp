#include "apiserver/etcd/stored_form.h"

#include <array>
#include <atomic>
#include <bit>
#include <random>

#include "apiserver/cache/index.h"
#include "apiserver/etcd/older_definitions.h"
#include "base/split.h"
#include "model/protobuf/protobuf.h"
#include "model/schema.h"

namespace berth::apiserver::etcd {
namespace {

constexpr std::string_view kOwnDirectory = "berth.dev";
constexpr std::string_view kProtobufMark("k8s\0", 4);

/// Where kube-apiserver keeps these (pkg/kubeapiserver/default_storage_factory_builder.go); all others under their plural.
std::string_view special_directory(std::string_view plural) {
  static const std::map<std::string_view, std::string_view> kSpecial = {{"replicationcontrollers", "controllers"},
                                                                        {"endpoints", "services/endpoints"},
                                                                        {"services", "services/specs"},
                                                                        {"nodes", "minions"},
                                                                        {"ingresses", "ingress"}};
  const auto found = kSpecial.find(plural);
  return found == kSpecial.end() ? plural : found->second;
}

/// Stored below their group, as JSON: custom resources, their definitions, and API services (kube-aggregator).
bool is_below_its_group(const model::KindInfo& kind) {
  return !model::has_protobuf(kind) || kind.group == "apiregistration.k8s.io" || kind.group == "apiextensions.k8s.io";
}

/// Older versions whose messages have the numbers of the version that is stored now; any other version's are not read as what they are not.
bool reads_like(const model::KindInfo& stored, std::string_view version) {
  static const std::map<std::string_view, std::set<std::string_view>> kTwins = {{"PodDisruptionBudget", {"v1beta1"}},
                                                                                {"CronJob", {"v1beta1"}},
                                                                                {"EndpointSlice", {"v1beta1"}},
                                                                                {"RuntimeClass", {"v1beta1"}},
                                                                                {"CertificateSigningRequest", {"v1beta1"}},
                                                                                {"CSIStorageCapacity", {"v1alpha1", "v1beta1"}},
                                                                                {"CSIDriver", {"v1beta1"}},
                                                                                {"CSINode", {"v1beta1"}},
                                                                                {"Lease", {"v1beta1"}},
                                                                                {"PriorityClass", {"v1beta1", "v1alpha1"}},
                                                                                {"VolumeAttributesClass", {"v1beta1"}},
                                                                                {"StorageClass", {"v1beta1"}},
                                                                                {"VolumeAttachment", {"v1beta1"}},
                                                                                {"Role", {"v1beta1", "v1alpha1"}},
                                                                                {"RoleBinding", {"v1beta1"}},
                                                                                {"ClusterRole", {"v1beta1", "v1alpha1"}},
                                                                                {"ClusterRoleBinding", {"v1beta1"}}};
  const auto found = kTwins.find(stored.kind);
  return found != kTwins.end() && found->second.contains(version);
}

/// "GROUP/PLURAL/[NAMESPACE/]NAME" of a custom resource; nullopt: it is something else.
std::optional<std::string> custom_key(std::string_view path) {
  if (path.ends_with('/')) path.remove_suffix(1);
  const auto parts = split(path, '/').list();
  // Groups of custom resources are domain names; what is berth's own is none.
  if (parts.size() < 3 || parts.size() > 4 || parts[0].find('.') == std::string_view::npos || parts[0] == kOwnDirectory)
    return std::nullopt;
  return parts.size() == 3 ? make_key(parts[0], parts[1], "", parts[2]) : make_key(parts[0], parts[1], parts[2], parts[3]);
}

/// The body with another apiVersion in its envelope.
std::string with_version(std::string_view body, std::string_view api_version, std::string_view kind) {
  std::string type, out(kProtobufMark);
  wire::append_field(type, 1, api_version);
  wire::append_field(type, 2, kind);
  wire::append_field(out, 1, type);
  wire::append_field(out, 2, model::bytes_field(body.substr(kProtobufMark.size()), 2));
  return out;
}

std::pair<std::string_view, std::string_view> group_and_plural(std::string_view cache_key) {
  const auto resource = resource_prefix(cache_key);
  const auto slash = resource.find('/', 1);
  if (slash == std::string_view::npos) return {};
  return {resource.substr(1, slash - 1), resource.substr(slash + 1, resource.size() - slash - 2)};
}

Result<json::Value> from_protobuf(const model::KindInfo& kind, std::string_view stored, bool& has_unknown) {
  const auto type = model::bytes_field(stored.substr(kProtobufMark.size()), 1);
  const auto api_version = model::bytes_field(type, 1);
  if (model::bytes_field(type, 2) != kind.kind) return fail(ErrorCode::kNotFound, fmt::format("it is a {}", model::bytes_field(type, 2)));
  const auto version = api_version.substr(api_version.rfind('/') + 1);
  if (model::find_kind(kind.group, version, kind.kind) != nullptr) return model::decode_protobuf(stored, &has_unknown);
  if (!reads_like(kind, version)) return fail(ErrorCode::kNotFound, fmt::format("{} is not known here", api_version));
  return model::decode_protobuf(with_version(stored, kind.api_version(), kind.kind), &has_unknown);
}

/// Makes the bytes of this write unlike those of any other with the same content: two servers that count one further at the same moment
/// write the same object, and by its bytes alone the one whose answer was lost would take the other's write for its own. In protobuf it is
/// a field behind those of runtime.Unknown that readers pass over, in JSON white space at the end.
void make_unlike_others(std::string& stored) {
  const auto mark = next_mark();
  if (stored.starts_with(kProtobufMark)) {
    wire::append_field(stored, 15, {mark.data(), mark.size()});
    return;
  }
  static constexpr std::array kBlanks = {' ', '\t', '\n', '\r'};
  for (const char byte : mark)
    for (int shift = 0; shift < 8; shift += 2) stored += kBlanks[static_cast<unsigned char>(byte) >> shift & 3];
}

/// Converts and defaults, as Kubernetes does on reading.
Result<void> to_stored_version(const model::KindInfo& kind, json::Value& document) {
  const auto api_version = std::string(json::get_string(document, {"apiVersion"}));
  if (api_version != kind.api_version()) {
    const auto version = std::string_view(api_version).substr(api_version.rfind('/') + 1);
    const auto* from = model::find_kind(kind.group, version, kind.kind);
    const bool is_old_definition = kind.kind == "CustomResourceDefinition" && version == "v1beta1";
    if (is_old_definition) definition_from_v1beta1(document);
    if (from == nullptr && !is_old_definition && !reads_like(kind, version))
      return fail(ErrorCode::kNotFound, fmt::format("{} is not known here", api_version));
    if (from != nullptr) model::convert(*from, kind, document);
    document.get_object()["apiVersion"] = kind.api_version();
  }
  model::apply_defaults(kind, document);
  model::fill_always_written(kind, document);
  return {};
}

}  // namespace

std::array<char, 8> next_mark() {
  static std::atomic<std::uint64_t> next = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return std::bit_cast<std::array<char, 8>>(next.fetch_add(0x9e3779b97f4a7c15ULL));
}

StoredForm::StoredForm(FormOptions options) : options_(std::move(options)) {
  for (const auto& kind : model::all_kinds()) {
    if (kind.is_virtual || kind.group != kind.storage_group || kind.version != kind.storage_version) continue;
    auto place = std::make_unique<Place>();
    place->kind = &kind;
    const bool below_group = is_below_its_group(kind);
    place->has_protobuf = !below_group;
    place->directory = below_group ? kind.group + "/" + kind.plural : std::string(special_directory(kind.plural));
    place->resource = make_prefix(kind.storage_group, kind.plural);
    by_directory_.emplace(place->directory, place.get());
    by_resource_.emplace(place->resource, place.get());
    places_.push_back(std::move(place));
  }
}

const StoredForm::Place* StoredForm::place_of_cache_key(std::string_view key) const {
  const auto found = by_resource_.find(resource_prefix(key));
  return found == by_resource_.end() ? nullptr : found->second;
}

std::string StoredForm::stored_key(std::string_view cache_key) const {
  const auto resource = resource_prefix(cache_key);
  const Place* place = place_of_cache_key(cache_key);
  std::string_view rest = cache_key.substr(resource.size());
  while (rest.starts_with('/')) rest.remove_prefix(1);
  if (place != nullptr) return fmt::format("{}/{}/{}", options_.prefix, place->directory, rest);
  return fmt::format("{}{}{}", options_.prefix, resource, rest);
}

std::optional<std::string> StoredForm::cache_key(std::string_view stored_key) const {
  if (!stored_key.starts_with(options_.prefix)) return std::nullopt;
  stored_key.remove_prefix(options_.prefix.size());
  if (!stored_key.starts_with('/')) return std::nullopt;
  stored_key.remove_prefix(1);
  auto slash = stored_key.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  auto found = by_directory_.find(stored_key.substr(0, slash));
  if (found == by_directory_.end()) {
    slash = stored_key.find('/', slash + 1);
    if (slash == std::string_view::npos) return std::nullopt;
    found = by_directory_.find(stored_key.substr(0, slash));
    if (found == by_directory_.end()) return custom_key(stored_key);
  }
  const auto rest = stored_key.substr(slash + 1);
  const Place& place = *found->second;
  const auto inner = rest.find('/');
  if (rest.empty() || place.kind->namespaced != (inner != std::string_view::npos)) return std::nullopt;
  if (!place.kind->namespaced) return make_key(place.kind->storage_group, place.kind->plural, "", rest);
  if (rest.find('/', inner + 1) != std::string_view::npos) return std::nullopt;
  return make_key(place.kind->storage_group, place.kind->plural, rest.substr(0, inner), rest.substr(inner + 1));
}

Result<Bytes> StoredForm::to_stored(std::string_view cache_key, std::string_view stored_key, const EncodedObject& object,
                                    Bytes* foreign) const {
  const Place* place = place_of_cache_key(cache_key);
  std::string stored;
  if (place != nullptr && place->has_protobuf && options_.writes_protobuf) {
    auto encoded = model::encode_protobuf(*model::type_of(*place->kind), place->kind->api_version(), place->kind->kind, object.value);
    if (!encoded) return fail(ErrorCode::kInternal, fmt::format("{} has no protobuf form", cache_key));
    stored = std::move(*encoded);
    if (foreign != nullptr && *foreign != nullptr) {
      if (auto kept = model::keep_unknown_fields(**foreign, stored)) stored = std::move(*kept);
      *foreign = make_bytes(std::string(stored));
    }
  } else {
    // Without the empty resourceVersion: the revision is the store's to say.
    static constexpr std::string_view kEmpty = R"("resourceVersion":"")";
    stored = object.value;
    std::size_t from = object.revision_offset - (kEmpty.size() - 1), size = kEmpty.size();
    if (stored[from + size] == ',')
      ++size;
    else if (stored[from - 1] == ',')
      --from, ++size;
    stored.erase(from, size);
  }
  make_unlike_others(stored);
  if (options_.encryption.rules.empty()) return make_bytes(std::move(stored));
  const auto [group, plural] = group_and_plural(cache_key);
  const auto* rule = options_.encryption.rule_of(group, plural);
  if (rule == nullptr) return make_bytes(std::move(stored));
  auto sealed = rule->providers.front()->encrypt(stored, stored_key);
  if (!sealed) return std::unexpected(sealed.error());
  return make_bytes(std::move(*sealed));
}

Result<EncodedObject> StoredForm::to_text(std::string_view cache_key, std::string_view stored_key, std::string_view stored,
                                          Bytes* foreign) const {
  const Place* place = place_of_cache_key(cache_key);
  encryption::Plain opened;
  if (!options_.encryption.rules.empty() || stored.starts_with(encryption::kPrefix)) {
    const auto [group, plural] = group_and_plural(cache_key);
    auto plain = encryption::open_value(options_.encryption, group, plural, stored, stored_key);
    if (!plain)
      return fail(ErrorCode::kCorrupt, fmt::format("{} cannot be read: {}. {}", stored_key, plain.error().message,
                                                   encryption::opening_advice(options_.encryption)));
    opened = std::move(*plain);
    if (options_.stale != nullptr) options_.stale->set(cache_key, opened.is_stale);
    stored = opened.value;
  }
  const auto unreadable = [&](const std::string& why) {
    return fail(ErrorCode::kCorrupt, fmt::format("{} is no object that can be read: {}", stored_key, why));
  };
  Result<json::Value> document = json::Value();
  if (stored.starts_with(kProtobufMark)) {
    if (place == nullptr) return fail(ErrorCode::kNotFound, "this kind is not served here");
    bool has_unknown = false;
    document = from_protobuf(*place->kind, stored, has_unknown);
    if (has_unknown && foreign != nullptr) *foreign = make_bytes(std::string(stored));
    if (!document && document.error().code == ErrorCode::kNotFound) return std::unexpected(document.error());
  } else {
    document = json::parse(stored);
  }
  if (!document) return unreadable(document.error().message);
  if (!document->is_object()) return unreadable("not an object");
  if (place != nullptr)
    if (auto current = to_stored_version(*place->kind, *document); !current) return std::unexpected(current.error());
  return encode_object(*document);
}

}  // namespace berth::apiserver::etcd
