// The parts of a text.
#pragma once
#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

namespace berth {

/// A text's parts as views of it, in order. Made by split and words.
class Parts {
 public:
  Parts(std::string_view text, char at, bool has_empty) : text_(text), at_(at), has_empty_(has_empty) {}

  class Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(const Parts& parts) : parts_(&parts) { find(); }
    std::string_view operator*() const { return part_; }
    Iterator& operator++() {
      from_ += part_.size() + 1;
      find();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return from_ > parts_->text_.size(); }

   private:
    void find() {
      const auto text = parts_->text_;
      for (; from_ <= text.size(); ++from_) {
        part_ = text.substr(from_);
        part_ = part_.substr(0, part_.find(parts_->at_));
        if (parts_->has_empty_ || !part_.empty()) return;
      }
    }
    const Parts* parts_;
    std::string_view part_;
    std::size_t from_ = 0;
  };
  [[nodiscard]] Iterator begin() const { return Iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }
  template <typename Text = std::string_view>
  [[nodiscard]] std::vector<Text> list() const {
    std::vector<Text> out;
    for (const auto part : *this) out.emplace_back(part);
    return out;
  }

 private:
  std::string_view text_;
  char at_;
  bool has_empty_;
};

/// What stands between the characters, nothing as well: "a,,b" has three parts, "" has one.
inline Parts split(std::string_view text, char at) { return {text, at, true}; }
/// What stands between them where that is anything: of a list that may have blanks at its ends, or none.
inline Parts words(std::string_view text, char at = ' ') { return {text, at, false}; }

}  // namespace berth
