#include "model/etcd_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/wire.h"
#include "model/protobuf/protobuf.h"

namespace berth::model {
namespace {

constexpr std::uint32_t kMagic = 0xED0CDAED, kVersion = 2;
constexpr std::size_t kPageHeader = 16, kMetaSize = 64, kBucketHeader = 16, kElement = 16;
constexpr std::uint16_t kBranch = 0x01, kLeaf = 0x02, kMeta = 0x04;
constexpr std::uint32_t kIsBucket = 0x01;
constexpr int kMaxDepth = 64;

struct Damaged {
  std::string what;
};

/// Little-endian, as every machine that etcd is supported on writes it.
template <typename Number>
Number read_number(std::string_view bytes, std::size_t at) {
  if (bytes.size() < sizeof(Number) || at > bytes.size() - sizeof(Number)) throw Damaged{"it is cut off"};
  Number out;
  std::memcpy(&out, bytes.data() + at, sizeof(Number));
  return out;
}

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  return hash;
}

struct Meta {
  std::uint32_t page_size = 0;
  std::uint64_t root = 0, pages = 0, transaction = 0;
};

/// What stands at `at`, after a page's header; nullopt when it is no sound meta.
std::optional<Meta> read_meta(std::string_view file, std::size_t at) {
  if (file.size() < at + kPageHeader + kMetaSize) return std::nullopt;
  const std::string_view meta = file.substr(at + kPageHeader, kMetaSize);
  if (read_number<std::uint32_t>(meta, 0) != kMagic || read_number<std::uint32_t>(meta, 4) != kVersion) return std::nullopt;
  if (read_number<std::uint64_t>(meta, 56) != fnv1a(meta.substr(0, 56))) return std::nullopt;
  return Meta{read_number<std::uint32_t>(meta, 8), read_number<std::uint64_t>(meta, 16), read_number<std::uint64_t>(meta, 40),
              read_number<std::uint64_t>(meta, 48)};
}

/// The pages below one root, in order of keys.
class Tree {
 public:
  using Each = std::function<void(std::string_view key, std::string_view value, bool is_bucket)>;
  Tree(std::string_view file, const Meta& meta) : file_(file), page_size_(meta.page_size), pages_(meta.pages), left_(meta.pages) {}

  void walk(std::uint64_t root, const Each& each) { walk_page(page(root), each, 0); }
  void walk_bucket(std::string_view bucket, const Each& each) {
    const auto root = read_number<std::uint64_t>(bucket, 0);
    // A small bucket is a page in its parent's value.
    if (root == 0) return walk_page(bucket.substr(std::min(bucket.size(), kBucketHeader)), each, 0);
    walk(root, each);
  }

 private:
  std::string_view page(std::uint64_t id) {
    // A tree has each of its pages once: more are a circle.
    if (left_-- == 0) throw Damaged{"its pages go round in a circle"};
    if (id >= pages_) throw Damaged{fmt::format("page {} is beyond its {} pages", id, pages_)};
    const std::size_t at = static_cast<std::size_t>(id) * page_size_;
    const std::size_t size = (static_cast<std::size_t>(read_number<std::uint32_t>(file_, at + 12)) + 1) * page_size_;
    if (at + size > file_.size()) throw Damaged{fmt::format("it is cut off in page {} of {}", id, pages_)};
    return file_.substr(at, size);
  }

  static std::string_view part(std::string_view from, std::size_t at, std::size_t size) {
    if (at > from.size() || size > from.size() - at) throw Damaged{"an entry reaches beyond its page"};
    return from.substr(at, size);
  }

  void walk_page(std::string_view page_bytes, const Each& each, int depth) {
    if (depth > kMaxDepth) throw Damaged{"its tree is too deep"};
    const auto flags = read_number<std::uint16_t>(page_bytes, 8);
    const std::size_t count = read_number<std::uint16_t>(page_bytes, 10);
    if ((flags & (kBranch | kLeaf)) == 0) throw Damaged{"a page of its tree is of another kind"};
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = kPageHeader + i * kElement;
      if ((flags & kBranch) != 0) {
        walk_page(page(read_number<std::uint64_t>(page_bytes, at + 8)), each, depth + 1);
        continue;
      }
      const auto kind = read_number<std::uint32_t>(page_bytes, at);
      const std::size_t begin = at + read_number<std::uint32_t>(page_bytes, at + 4);
      const std::size_t key_size = read_number<std::uint32_t>(page_bytes, at + 8);
      const std::size_t value_size = read_number<std::uint32_t>(page_bytes, at + 12);
      each(part(page_bytes, begin, key_size), part(page_bytes, begin + key_size, value_size), (kind & kIsBucket) != 0);
    }
  }

  std::string_view file_;
  std::size_t page_size_;
  std::uint64_t pages_, left_;
};

/// mvccpb.KeyValue's key and value.
struct KeyValue {
  std::string_view key, value;
};

KeyValue read_key_value(std::string_view message) try {
  KeyValue out;
  wire::Field field;
  for (wire::Reader reader(message); reader.next(field);) {
    if (field.number == 1) out.key = field.bytes;
    if (field.number == 5) out.value = field.bytes;
  }
  return out;
} catch (const wire::Malformed&) {
  throw Damaged{"an entry is no key and value"};
}

struct Present {
  std::string_view value;
  std::int64_t revision = 0;
};

/// apiVersion and kind of a protobuf body, for words.
std::string kind_of_body(std::string_view body) {
  try {
    // runtime.Unknown {1: TypeMeta {1: apiVersion, 2: kind}}: TypeMeta is read as a key and a value are, its kind has number 2.
    const std::string_view type = read_key_value(body.substr(4)).key;
    std::string out;
    for (std::size_t at = 0; at + 2 <= type.size();) {
      const auto size = static_cast<unsigned char>(type[at + 1]);
      out += fmt::format("{}{}", out.empty() ? "" : " ", type.substr(at + 2, size));
      at += 2 + size;
    }
    return out;
  } catch (const Damaged&) {
    return "?";
  }
}

void tell(const Present& present, EtcdSnapshotNotes& notes, std::set<std::string>& unknown, const std::function<void(json::Value)>& each) {
  constexpr std::string_view kProtobuf{"k8s\0", 4};
  if (present.value.starts_with("k8s:enc:")) {
    ++notes.encrypted;
    return;
  }
  Result<json::Value> object = invalid("");
  if (present.value.starts_with(kProtobuf)) {
    object = decode_protobuf(present.value);
    if (!object) return static_cast<void>(unknown.insert(kind_of_body(present.value)));
  } else if (present.value.starts_with('{')) {
    object = json::parse(present.value);
  }
  if (!object || !object->is_object() || json::get_string(*object, {"kind"}).empty() ||
      json::get_string(*object, {"metadata", "name"}).empty()) {
    ++notes.others;
    return;
  }
  json::set(*object, {"metadata", "resourceVersion"}, json::Value(std::to_string(present.revision)));
  ++notes.objects;
  each(std::move(*object));
}

std::int64_t revision_of(std::string_view key) {
  std::uint64_t out = 0;
  for (const char byte : key.substr(0, 8)) out = out << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(out);
}

Meta choose_meta(std::string_view file) {
  std::optional<Meta> best = read_meta(file, 0);
  // The second stands one page on; when the first is damaged, at one of the usual sizes.
  for (const std::size_t size : best ? std::vector<std::size_t>{best->page_size} : std::vector<std::size_t>{4096, 8192, 16384, 65536})
    if (const auto other = read_meta(file, size); other && (!best || other->transaction > best->transaction)) best = other;
  if (!best) throw Damaged{"neither of its two heads is sound"};
  if (best->page_size < 1024 || best->page_size > (1U << 20)) throw Damaged{fmt::format("pages of {} bytes", best->page_size)};
  if (best->pages > file.size() / best->page_size)
    throw Damaged{fmt::format("it is cut off: {} pages of {} bytes were written, {} are there", best->pages, best->page_size,
                              file.size() / best->page_size)};
  return *best;
}

}  // namespace

bool is_etcd_snapshot(std::string_view bytes) {
  return bytes.size() >= kPageHeader + kMetaSize && (read_number<std::uint16_t>(bytes, 8) & kMeta) != 0 &&
         read_number<std::uint32_t>(bytes, kPageHeader) == kMagic;
}

Result<EtcdSnapshotNotes> read_etcd_snapshot(std::string_view bytes, const std::function<void(json::Value)>& each) {
  EtcdSnapshotNotes notes;
  try {
    const Meta meta = choose_meta(bytes);
    Tree tree(bytes, meta);
    std::map<std::string_view, Present> present;
    bool has_keys = false;
    // Revisions ascend, so the last word about a key is its present state.
    const auto take = [&](std::string_view key, std::string_view value, bool is_bucket) {
      if (is_bucket || key.size() < 17) return;
      const bool is_deleted = key.size() > 17 && key[17] == 't';
      const KeyValue entry = read_key_value(value);
      notes.revision = std::max(notes.revision, revision_of(key));
      if (is_deleted)
        present.erase(entry.key);
      else
        present[entry.key] = {entry.value, revision_of(key)};
    };
    tree.walk(meta.root, [&](std::string_view name, std::string_view value, bool is_bucket) {
      if (!is_bucket || name != "key") return;
      has_keys = true;
      tree.walk_bucket(value, take);
    });
    if (!has_keys) return invalid("a bbolt database, but not etcd's: it has no bucket named key");
    std::set<std::string> unknown;
    for (const auto& [key, entry] : present) tell(entry, notes, unknown, each);
    notes.unknown.assign(unknown.begin(), unknown.end());
  } catch (const Damaged& damage) {
    return invalid(fmt::format("the etcd snapshot is damaged: {}", damage.what));
  }
  if (notes.objects == 0)
    return invalid(
        fmt::format("the etcd snapshot has no Kubernetes objects ({} values of others, {} encrypted)", notes.others, notes.encrypted));
  return notes;
}

std::vector<std::string> sentences_of(const EtcdSnapshotNotes& notes) {
  std::vector<std::string> out;
  if (notes.encrypted > 0)
    out.push_back(fmt::format("{} values of the snapshot are encrypted (an EncryptionConfiguration): left out", notes.encrypted));
  if (!notes.unknown.empty())
    out.push_back(fmt::format("kinds of the snapshot that are not known here: {}: left out", fmt::join(notes.unknown, ", ")));
  return out;
}

}  // namespace berth::model
