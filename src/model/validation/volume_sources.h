// The pieces of volume validation. Within src/model/validation only.
#pragma once
#include "model/validation/validation.h"

namespace berth::model::validation {

/// One entry of a pod's volumes but for its name: its first source is checked, a second one is too many. `pod_name` (may be empty) names
/// the claims that ephemeral volumes make; `is_pod`: not a template.
void volume_source(const Value& volume, std::string_view pod_name, bool is_pod, const Path& at, Errors& errors);
/// The source of a PersistentVolume.
void persistent_volume_source(const Value& spec, const Path& at, Errors& errors);
void projected_volume(const Value& source, const Path& at, Errors& errors);
void downward_api_volume(const Value& source, const Path& at, Errors& errors);
/// `items` of secrets and config maps.
void key_items(const Value& source, const Path& source_at, Errors& errors);
/// A file mode below 01000.
void file_mode(const Value& holder, std::string_view key, const Path& at, Errors& errors);
bool path_goes_up(std::string_view path);
/// A path below the volume: relative, without "..".
void descending_path(std::string_view path, const Path& at, Errors& errors);
/// As above, and not a name that volumes keep for themselves.
void local_path(std::string_view path, const Path& at, Errors& errors);

}  // namespace berth::model::validation
