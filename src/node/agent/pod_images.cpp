// PodWorker: the images of containers and of image volumes.
#include "node/agent/image_volumes.h"
#include "node/agent/images.h"
#include "node/agent/mounts.h"
#include "node/agent/node_metrics.h"
#include "node/agent/pod_worker.h"

namespace berth::node::agent {
namespace {

constexpr Duration kConfigErrorRetry = std::chrono::seconds(10);
constexpr Duration kFirstImageBackoff = std::chrono::seconds(10), kMaxImageBackoff = std::chrono::seconds(300);
constexpr Duration kShowPullError = std::chrono::seconds(3);  // ErrImagePull is to be seen before ImagePullBackOff.

/// Why nothing can be pulled under this name.
std::optional<std::string> wrong_image_name(const std::string& image) {
  const auto wrong = wrong_image_reference(image);
  if (!wrong) return std::nullopt;
  return fmt::format("Failed to apply default image tag \"{0}\": couldn't parse image name \"{0}\": {1}", image, *wrong);
}

bool mounts_volume(const json::Value& container, std::string_view volume) {
  return std::ranges::any_of(json::get_array(container, {"volumeMounts"}),
                             [&](const json::Value& mount) { return json::get_string(mount, {"name"}) == volume; });
}

}  // namespace

/// Pulls and mounts the image volumes that a container sees, once a pod: one that is there stays as it is until the pod is gone. False: one
/// cannot be had now, and the container's state says why.
bool PodWorker::place_image_volumes(PodContext& context, std::size_t i, TimePoint now, TimePoint& next) {
  const json::Value& container = container_spec(pod_, i);
  for (const json::Value& volume : json::get_array(pod_, {"spec", "volumes"})) {
    const json::Value* source = json::find(volume, "image");
    const std::string name(json::get_string(volume, {"name"}));
    if (!source || image_volumes_.contains(name) || !mounts_volume(container, name)) continue;
    const std::string directory = image_volume_directory(this->directory(), name);
    // As a container asks for its image; the events are the pod's.
    const json::Value wanted =
        json::Object{{"image", json::get_string(*source, {"reference"})}, {"imagePullPolicy", json::get_string(*source, {"pullPolicy"})}};
    Result<void> mounted = fail(ErrorCode::kUnavailable, "this node's container runtime mounts no images");
    if (environment_.image_volumes && environment_.image_volumes->is_mounted(directory)) {
      mounted = {};
    } else if (const auto image = ensure_image(wanted, containers_.size()); !image) {
      if (!interrupt_) image_failed(i, wanted, image.error(), now, next);
      return false;
    } else if (environment_.image_volumes) {
      mounted = environment_.image_volumes->mount(image->reference, directory);
    }
    if (!mounted) {
      const std::string message = fmt::format("{}: {}", kImageVolumeMountFailed, mounted.error().message);
      emit("Warning", "Failed", "Error: " + message, i);
      set_waiting(i, "CreateContainerError", message);
      containers_[i].not_before = environment_.clock.now() + kConfigErrorRetry;
      next = std::min(next, containers_[i].not_before);
      return false;
    }
    image_volumes_[name] = PlacedVolume{directory, true, true};
    context.volumes[name] = image_volumes_[name];
  }
  return true;
}

/// kInvalid: ErrImageNeverPull or InvalidImageName; otherwise the pull failed.
Result<PodWorker::PulledImage> PodWorker::ensure_image(const json::Value& container, std::size_t i) {
  const std::string given(json::get_string(container, {"image"})), image = with_default_tag(given), policy = pull_policy(container);
  if (const auto wrong = wrong_image_name(given)) {
    emit("Warning", "InspectFailed", *wrong, i);
    return invalid(*wrong);
  }
  const json::Value spec = json::Object{{"image", json::Object{{"image", image}}}};
  const auto look = [&]() -> Result<PulledImage> {
    const auto status = environment_.runtime.call("ImageService/ImageStatus", spec);
    if (!status) return std::unexpected(status.error());
    return PulledImage{std::string(json::get_string(*status, {"image", "id"})), *status};
  };
  if (policy != "Always") {
    auto there = look();
    if (!there) return there;
    if (!there->reference.empty()) {
      emit("Normal", "Pulled", fmt::format("Container image \"{}\" already present on machine and can be accessed by the pod", given), i);
      return there;
    }
    if (policy == "Never") {
      const std::string message = fmt::format("Container image \"{}\" is not present with pull policy of Never", given);
      emit("Warning", "ErrImageNeverPull", message, i);
      return fail(ErrorCode::kConflict, message);
    }
  }
  const auto began = std::chrono::steady_clock::now();
  emit("Normal", "Pulling", fmt::format("Pulling image \"{}\"", given), i);
  if (const auto pulled = pull_image(container, image, i); !pulled) return std::unexpected(pulled.error());
  auto there = look();
  if (!there) return there;
  const std::string took =
      format_milliseconds(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count());
  emit("Normal", "Pulled",
       fmt::format("Successfully pulled image \"{}\" in {} ({} including waiting). Image size: {} bytes.", given, took, took,
                   json::get_string(there->status, {"image", "size"}, "0")),
       i);
  return there;
}

/// With every credential of the pod's that is for the registry, then with none.
Result<void> PodWorker::pull_image(const json::Value&, const std::string& image, std::size_t i) {
  std::vector<json::Value> secrets;
  std::vector<std::string> missing;
  for (const json::Value& reference : json::get_array(pod_, {"spec", "imagePullSecrets"})) {
    const std::string name(json::get_string(reference, {"name"}));
    if (auto secret = environment_.objects.secret(spec_.ns, name))
      secrets.push_back(std::move(*secret));
    else
      missing.push_back(name);
  }
  if (!missing.empty())
    emit("Warning", "FailedToRetrieveImagePullSecret",
         fmt::format("Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
                     fmt::join(missing, ", ")),
         i);
  std::vector<json::Object> credentials = image_credentials(image, secrets);
  if (credentials.empty()) credentials.emplace_back();
  auto step = trace_.step("ImageService/PullImage", "container.image.name", image);
  Error error{ErrorCode::kInternal, {}};
  for (json::Object& auth : credentials) {
    json::Object request{{"image", json::Object{{"image", image}}}};
    if (!auth.empty()) request["auth"] = std::move(auth);
    const auto pulled = environment_.runtime.call("ImageService/PullImage", request, 3'600'000, &interrupt_);
    if (pulled) return {};
    error = pulled.error();
    if (interrupt_) break;
  }
  step.fail(error.message);
  return std::unexpected(error);
}

void PodWorker::image_failed(std::size_t i, const json::Value& container, const Error& error, TimePoint now, TimePoint& next) {
  Container& own = containers_[i];
  if (error.code == ErrorCode::kInvalid || error.code == ErrorCode::kConflict) {
    const char* reason = error.code == ErrorCode::kInvalid ? "InvalidImageName" : "ErrImageNeverPull";
    emit("Warning", "Failed", fmt::format("Error: {}", reason), i);
    set_waiting(i, reason, error.message);
    own.not_before = now + kConfigErrorRetry;
  } else {
    // An unknown code says nothing: it is left out.
    own.image_error = error.code == ErrorCode::kNotFound || error.code == ErrorCode::kUnavailable ? rpc_error(error) : error.message;
    own.failed_image = json::get_string(container, {"image"});
    own.image_backoff = own.image_backoff ? std::min(*own.image_backoff * 2, kMaxImageBackoff) : kFirstImageBackoff;
    emit("Warning", "Failed", fmt::format("Failed to pull image \"{}\": {}", own.failed_image, own.image_error), i);
    emit("Warning", "Failed", "Error: ErrImagePull", i);
    if (environment_.metrics) environment_.metrics->container_start_failed(spec_.containers[i].role, "ErrImagePull");
    set_waiting(i, "ErrImagePull", own.image_error);
    own.not_before = environment_.clock.now() + *own.image_backoff;
    next = std::min(next, own.not_before - *own.image_backoff + kShowPullError);
  }
  next = std::min(next, own.not_before);
}

/// The first part of the pause after a failed pull shows what went wrong, the rest that there is a pause.
void PodWorker::show_image_backoff(std::size_t i, TimePoint now, TimePoint& next) {
  const Container& own = containers_[i];
  const ContainerRecord& record = state_.containers[i];
  if (own.image_error.empty() || record.state.reason == "ImagePullBackOff") return;
  const TimePoint shift = own.not_before - own.image_backoff.value_or(Duration::zero()) + kShowPullError;
  if (now < shift) {
    next = std::min(next, shift);
    return;
  }
  const std::string& image = own.failed_image;
  emit("Normal", "BackOff", fmt::format("Back-off pulling image \"{}\"", image), i);
  emit("Warning", "Failed", "Error: ImagePullBackOff", i);
  set_waiting(i, "ImagePullBackOff", fmt::format("Back-off pulling image \"{}\": ErrImagePull: {}", image, own.image_error));
}

}  // namespace berth::node::agent
