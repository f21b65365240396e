// The order in which Go's sort.Sort and sort.Slice leave elements. They are not stable, but what they do depends on the answers of `less`
// alone, so that lists with ties come out the same way every time; decisions recorded from kubelets and kube-schedulers show it on lists of
// more than 12 elements. This is the same algorithm (pattern-defeating quicksort as in Go 1.21 and later): every comparison and every
// exchange happens in the same order.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

namespace berth {

/// Works on positions 0 … count-1: `less(i, j)` compares the elements that are there now, `exchange(i, j)` swaps them. `less` must be a
/// strict weak order; where it is not, some order comes out, and no position outside the list is ever asked for.
template <typename Less, typename Exchange>
class GoSort {
 public:
  GoSort(Less less, Exchange exchange) : less_(std::move(less)), exchange_(std::move(exchange)) {}

  void run(int count) { quicksort({0, count}, std::bit_width(static_cast<unsigned>(count))); }

 private:
  struct Range {
    int first, end;
    [[nodiscard]] int size() const { return end - first; }
  };
  enum class Looks { kUnknown, kSorted, kReversed };
  struct Pivot {
    int at;
    Looks looks;
  };
  struct Split {
    int pivot;
    bool was_split_before;  ///< Nothing had to be moved across the pivot.
  };

  static constexpr int kInsertionSortMost = 12;
  static constexpr int kSmallestForNineSamples = 50, kSmallestForShifting = 50;
  static constexpr int kMostExchangesOfSamples = 12;  ///< Four medians of three, three exchanges each.
  static constexpr int kMostRepairs = 5;

  /// `bad_splits` more splits may be lopsided before heap sort takes over.
  void quicksort(Range range, int bad_splits) {
    bool was_balanced = true, was_split_before = true;
    while (range.size() > kInsertionSortMost) {
      if (bad_splits == 0) return heap_sort(range);
      if (!was_balanced) {
        scatter(range);
        --bad_splits;
      }
      Pivot pivot = choose_pivot(range);
      if (pivot.looks == Looks::kReversed) {
        for (int i = range.first, j = range.end - 1; i < j; ++i, --j) exchange_(i, j);
        pivot = {range.first + range.end - 1 - pivot.at, Looks::kSorted};
      }
      if (was_balanced && was_split_before && pivot.looks == Looks::kSorted && repair(range)) return;
      // What stands before the range is nowhere greater than what is in it: if the pivot is not greater either, it is the smallest, and all
      // its equals can be set aside at once.
      if (range.first > 0 && !less_(range.first - 1, pivot.at)) {
        range.first = end_of_equals(range, pivot.at);
        continue;
      }
      const Split split = partition(range, pivot.at);
      was_split_before = split.was_split_before;
      const Range left{range.first, split.pivot}, right{split.pivot + 1, range.end};
      // Go counts the pivot to the right side here.
      const int right_size = range.end - split.pivot, least = range.size() / 8;
      const bool left_is_smaller = left.size() < right_size;
      was_balanced = (left_is_smaller ? left.size() : right_size) >= least;
      quicksort(left_is_smaller ? left : right, bad_splits);
      range = left_is_smaller ? right : left;
    }
    for (int i = range.first + 1; i < range.end; ++i) sink_left(i, range.first);
  }

  /// Moves the element at `i` to the left while it is less than its neighbour; not past `first`.
  void sink_left(int i, int first) {
    for (; i > first && less_(i, i - 1); --i) exchange_(i, i - 1);
  }

  void heap_sort(Range range) {
    for (int i = (range.size() - 1) / 2; i >= 0; --i) sift_down(range.first, i, range.size());
    for (int i = range.size() - 1; i >= 0; --i) {
      exchange_(range.first, range.first + i);
      sift_down(range.first, 0, i);
    }
  }
  /// The heap is the `size` elements from `base`; `node` may be too small for its place.
  void sift_down(int base, int node, int size) {
    for (int child; (child = 2 * node + 1) < size; node = child) {
      if (child + 1 < size && less_(base + child, base + child + 1)) ++child;
      if (!less_(base + node, base + child)) return;
      exchange_(base + node, base + child);
    }
  }

  /// Exchanges the three middle elements with others, chosen by a generator that only the size seeds.
  void scatter(Range range) {
    const auto size = static_cast<unsigned>(range.size());
    const unsigned mask = (1U << std::bit_width(size)) - 1;
    const int middle = range.first + range.size() / 4 * 2;
    std::uint64_t random = size;
    for (int at = middle - 1; at <= middle + 1; ++at) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      unsigned other = static_cast<unsigned>(random) & mask;
      if (other >= size) other -= size;
      exchange_(at, range.first + static_cast<int>(other));
    }
  }

  /// The median of the elements at the quarters (of large ranges, of the medians around these). No exchange is made; how many would have
  /// been needed to put the samples into order says what the range looks like.
  Pivot choose_pivot(Range range) {
    const int quarter = range.size() / 4;
    std::array<int, 3> samples = {range.first + quarter, range.first + 2 * quarter, range.first + 3 * quarter};
    int exchanges = 0;
    if (range.size() >= kSmallestForNineSamples)
      for (int& sample : samples) sample = median({sample - 1, sample, sample + 1}, exchanges);
    const int at = median(samples, exchanges);
    if (exchanges == 0) return {at, Looks::kSorted};
    return {at, exchanges == kMostExchangesOfSamples ? Looks::kReversed : Looks::kUnknown};
  }
  int median(std::array<int, 3> positions, int& exchanges) {
    for (const auto& [low, high] : {std::pair(0, 1), std::pair(1, 2), std::pair(0, 1)}) {
      if (!less_(positions[high], positions[low])) continue;
      std::swap(positions[low], positions[high]);
      ++exchanges;
    }
    return positions[1];
  }

  /// Tries to sort a range that looks sorted with a few moves. False: it is not sorted yet.
  bool repair(Range range) {
    int i = range.first + 1;
    for (int repairs = 0; repairs < kMostRepairs; ++repairs) {
      while (i < range.end && !less_(i, i - 1)) ++i;
      if (i == range.end) return true;
      if (range.size() < kSmallestForShifting) return false;
      exchange_(i, i - 1);
      // As in Go, the one may move left beyond the range: what is there is not greater, so it stops at the border.
      if (i - range.first >= 2) sink_left(i - 1, 0);
      if (range.end - i >= 2)
        for (int j = i + 1; j < range.end && less_(j, j - 1); ++j) exchange_(j, j - 1);
    }
    return false;
  }

  /// Puts what is less than the pivot before it and the rest behind it.
  Split partition(Range range, int pivot) {
    const int held = range.first;
    exchange_(held, pivot);
    int low = held + 1, high = range.end - 1;
    bool was_split_before = true;
    for (;; was_split_before = false) {
      while (low <= high && less_(low, held)) ++low;
      while (low <= high && !less_(high, held)) --high;
      if (low > high) break;
      exchange_(low++, high--);
    }
    exchange_(high, held);
    return {high, was_split_before};
  }

  /// For a pivot that nothing in the range is less than: puts its equals first and returns where they end.
  int end_of_equals(Range range, int pivot) {
    const int held = range.first;
    exchange_(held, pivot);
    int low = held + 1, high = range.end - 1;
    for (;;) {
      while (low <= high && !less_(held, low)) ++low;
      while (low <= high && less_(held, high)) --high;
      if (low > high) return low;
      exchange_(low++, high--);
    }
  }

  Less less_;
  Exchange exchange_;
};

/// Sorts a random-access container with `less(element, element)` into the order that Go's sort.Slice gives it.
template <typename Container, typename Less>
void go_sort(Container& items, Less less) {
  using std::swap;
  using Index = typename Container::size_type;
  GoSort sorter([&](int i, int j) { return static_cast<bool>(less(items[static_cast<Index>(i)], items[static_cast<Index>(j)])); },
                [&](int i, int j) { swap(items[static_cast<Index>(i)], items[static_cast<Index>(j)]); });
  sorter.run(static_cast<int>(items.size()));
}

}  // namespace berth
