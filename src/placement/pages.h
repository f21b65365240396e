// Arrays and logs that are cheap to copy: copies share their pages until one of them writes (docs/decisions/0015).
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace berth::placement {

/// What is behind a pointer that copies share, made the caller's own before a write. Threads may hold copies each of their own.
template <typename T>
T& unshare(std::shared_ptr<T>& pointer) {
  if (pointer.use_count() != 1) pointer = std::make_shared<T>(*pointer);
  std::atomic_thread_fence(std::memory_order_acquire);
  return *pointer;
}

/// Elements of a page: about 16 KB, so that a copied page costs a microsecond or two and a copied array a pointer for every page. Fewer of
/// what counts references: each is touched.
template <typename T>
inline constexpr std::size_t kPageElements = std::is_trivially_copyable_v<T> ? std::bit_floor(std::max<std::size_t>(16384 / sizeof(T), 16))
                                                                             : 128;

/// A vector whose copies share pages. Reading costs one load more than a vector's; the first write to a shared page copies that page.
template <typename T>
class Pages {
 public:
  static constexpr std::size_t kPage = kPageElements<T>;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const T& operator[](std::size_t at) const { return (*pages_[at / kPage])[at % kPage]; }
  /// For writing. The reference holds until the next copy or resize.
  [[nodiscard]] T& edit(std::size_t at) { return unshare(pages_[at / kPage])[at % kPage]; }
  [[nodiscard]] const T& back() const { return (*this)[size_ - 1]; }

  void push_back(T value) {
    if (size_ == pages_.size() * kPage) pages_.push_back(std::make_shared<Page>());
    ++size_;
    edit(size_ - 1) = std::move(value);
  }
  /// New elements are T().
  void resize(std::size_t size) {
    const std::size_t before = size_;
    pages_.resize((size + kPage - 1) / kPage, blank());
    size_ = size;
    // Elements that a shrunken array left behind come back as new ones.
    for (std::size_t at = size; at < std::min(before, pages_.size() * kPage); ++at) edit(at) = T();
  }
  void assign(std::size_t size, const T& value) {
    clear();
    resize(size);
    for (std::size_t at = 0; at < size; ++at) edit(at) = value;
  }
  /// `size` times T().
  void renew(std::size_t size) {
    clear();
    resize(size);
  }
  void clear() {
    pages_.clear();
    size_ = 0;
  }
  [[nodiscard]] std::size_t memory_bytes() const {
    const auto own = std::ranges::count_if(pages_, [](const auto& page) { return page != blank(); });
    return static_cast<std::size_t>(own) * sizeof(Page) + pages_.capacity() * sizeof(pages_[0]);
  }

 private:
  using Page = std::array<T, kPage>;
  /// What nobody has written to yet is everybody's.
  static const std::shared_ptr<Page>& blank() {
    static const auto kBlank = std::make_shared<Page>();
    return kBlank;
  }
  std::vector<std::shared_ptr<Page>> pages_;
  std::size_t size_ = 0;
};

/// A log whose copies share what was written before they parted. Positions never change; old entries are dropped page by page.
template <typename T>
class PagedLog {
 public:
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] std::size_t size() const { return end_ - begin_; }
  [[nodiscard]] const T& operator[](std::uint64_t position) const { return (*pages_[position / kPage - first_page_])[position % kPage]; }

  void push_back(T value) {
    if (end_ / kPage - first_page_ == pages_.size()) pages_.push_back(std::make_shared<Page>());
    unshare(pages_.back())[end_ % kPage] = std::move(value);
    ++end_;
  }
  [[nodiscard]] std::size_t memory_bytes() const { return pages_.size() * (sizeof(Page) + sizeof(pages_[0])); }
  /// Drops the older half.
  void drop_half() {
    begin_ += size() / 2;
    const std::uint64_t first = begin_ / kPage;
    pages_.erase(pages_.begin(), pages_.begin() + static_cast<std::ptrdiff_t>(first - first_page_));
    first_page_ = first;
    // What an entry holds goes with it.
    if constexpr (!std::is_trivially_copyable_v<T>)
      for (std::uint64_t at = first * kPage; at < begin_; ++at) unshare(pages_.front())[at % kPage] = T();
  }
  /// Entries from `position` on are gone; requires one that is there, or the end.
  void truncate(std::uint64_t position) {
    end_ = position;
    pages_.resize((end_ + kPage - 1) / kPage - first_page_);
  }
  /// Nothing is there; positions go on from `position`.
  void restart(std::uint64_t position) {
    pages_.clear();
    begin_ = end_ = position;
    first_page_ = position / kPage;
  }

 private:
  static constexpr std::size_t kPage = kPageElements<T>;
  using Page = std::array<T, kPage>;
  std::vector<std::shared_ptr<Page>> pages_;
  std::uint64_t begin_ = 0, end_ = 0, first_page_ = 0;
};

}  // namespace berth::placement
