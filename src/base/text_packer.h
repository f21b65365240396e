// Which texts are packed against which (kept_text.h).
#pragma once
#include <unordered_map>

#include "base/kept_text.h"

namespace berth {

/// Packs texts, and finds the samples for it: a text of the same family, or else of the same resource. A family that many texts come of
/// gets a sample of its own once it would have paid. Samples are kept as long as a text needs them. Not thread-safe.
class TextPacker {
 public:
  TextPacker();
  ~TextPacker();
  TextPacker(const TextPacker&) = delete;
  TextPacker& operator=(const TextPacker&) = delete;

  /// Below `resource`, `name` without what is behind its last '-' or '.' is the family: pods of a ReplicaSet. Texts that are small, or
  /// hardly get smaller, stay plain, as do those that are packed already. Returns the bytes that it saved.
  std::size_t pack(std::string_view resource, std::string_view name, const KeptText& text);
  [[nodiscard]] std::size_t families() const { return families_.size(); }
  [[nodiscard]] std::size_t preparations() const { return preparations_; }  ///< Of samples, ever.

  static constexpr std::size_t kLeastBytes = 256, kMostSampleBytes = 64 * 1024, kMostFamilies = 8192;

 private:
  struct Context;
  struct Prepared;
  struct Family {
    Bytes sample;
    std::size_t excess = 0;              ///< Bytes that texts took beyond what they would with a good sample.
    std::size_t uses = 0;                ///< Of the sample.
    std::shared_ptr<Prepared> prepared;  ///< The sample, once it is used often: half the work for each text.
  };
  std::string_view compress(Family* beside, const std::string& text);
  void prepare(Family& family);
  Family& family(std::string_view resource, std::string_view stem);

  std::unique_ptr<Context> context_;
  std::unordered_map<std::string, Family> families_;
  std::size_t prepared_ = 0, preparations_ = 0;
};

}  // namespace berth
