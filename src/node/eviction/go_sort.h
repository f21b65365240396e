// Go's sort.Sort: pattern-defeating quicksort, insertion sort up to 12 elements. It is not stable, but for a given input its result is
// always the same, and rankings of more than 12 pods with ties show it (FORMAT "Ties in the ranking"). Source: Go sort/zsortinterface.go.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace berth::node::eviction {

/// Sorts by calls of `less(i, j)` and `swap(i, j)` on positions alone.
template <typename Less, typename Swap>
class GoSorter {
 public:
  GoSorter(Less less, Swap swap) : less_(less), swap_(swap) {}
  void sort(int n) { quick(0, n, static_cast<int>(std::bit_width(static_cast<unsigned>(n)))); }

 private:
  enum class Hint { kUnknown, kIncreasing, kDecreasing };

  void insertion(int a, int b) {
    for (int i = a + 1; i < b; ++i)
      for (int j = i; j > a && less_(j, j - 1); --j) swap_(j, j - 1);
  }
  void sift_down(int low, int high, int first) {
    int root = low;
    for (;;) {
      int child = 2 * root + 1;
      if (child >= high) return;
      if (child + 1 < high && less_(first + child, first + child + 1)) ++child;
      if (!less_(first + root, first + child)) return;
      swap_(first + root, first + child);
      root = child;
    }
  }
  void heap(int a, int b) {
    const int high = b - a;
    for (int i = (high - 1) / 2; i >= 0; --i) sift_down(i, high, a);
    for (int i = high - 1; i >= 0; --i) {
      swap_(a, a + i);
      sift_down(0, i, a);
    }
  }
  void quick(int a, int b, int limit) {
    bool was_balanced = true, was_partitioned = true;
    for (;;) {
      const int length = b - a;
      if (length <= 12) return insertion(a, b);
      if (limit == 0) return heap(a, b);
      if (!was_balanced) {
        break_patterns(a, b);
        --limit;
      }
      auto [pivot, hint] = choose_pivot(a, b);
      if (hint == Hint::kDecreasing) {
        reverse_range(a, b);
        pivot = (b - 1) - (pivot - a);
        hint = Hint::kIncreasing;
      }
      if (was_balanced && was_partitioned && hint == Hint::kIncreasing && partial_insertion(a, b)) return;
      if (a > 0 && !less_(a - 1, pivot)) {
        a = partition_equal(a, b, pivot);
        continue;
      }
      const auto [mid, already] = partition(a, b, pivot);
      was_partitioned = already;
      const int left = mid - a, right = b - mid, balance = length / 8;
      if (left < right) {
        was_balanced = left >= balance;
        quick(a, mid, limit);
        a = mid + 1;
      } else {
        was_balanced = right >= balance;
        quick(mid + 1, b, limit);
        b = mid;
      }
    }
  }
  std::pair<int, bool> partition(int a, int b, int pivot) {
    swap_(a, pivot);
    int i = a + 1, j = b - 1;
    while (i <= j && less_(i, a)) ++i;
    while (i <= j && !less_(j, a)) --j;
    if (i > j) {
      swap_(j, a);
      return {j, true};
    }
    swap_(i, j);
    ++i;
    --j;
    for (;;) {
      while (i <= j && less_(i, a)) ++i;
      while (i <= j && !less_(j, a)) --j;
      if (i > j) break;
      swap_(i, j);
      ++i;
      --j;
    }
    swap_(j, a);
    return {j, false};
  }
  int partition_equal(int a, int b, int pivot) {
    swap_(a, pivot);
    int i = a + 1, j = b - 1;
    for (;;) {
      while (i <= j && !less_(a, i)) ++i;
      while (i <= j && less_(a, j)) --j;
      if (i > j) break;
      swap_(i, j);
      ++i;
      --j;
    }
    return i;
  }
  bool partial_insertion(int a, int b) {
    constexpr int kMaxSteps = 5, kShortestShifting = 50;
    int i = a + 1;
    for (int step = 0; step < kMaxSteps; ++step) {
      while (i < b && !less_(i, i - 1)) ++i;
      if (i == b) return true;
      if (b - a < kShortestShifting) return false;
      swap_(i, i - 1);
      if (i - a >= 2) {
        for (int j = i - 1; j >= 1; --j) {
          if (!less_(j, j - 1)) break;
          swap_(j, j - 1);
        }
      }
      if (b - i >= 2) {
        for (int j = i + 1; j < b; ++j) {
          if (!less_(j, j - 1)) break;
          swap_(j, j - 1);
        }
      }
    }
    return false;
  }
  void break_patterns(int a, int b) {
    const int length = b - a;
    if (length < 8) return;
    std::uint64_t random = static_cast<std::uint64_t>(length);
    const unsigned modulus = 1U << std::bit_width(static_cast<unsigned>(length));
    const int at = a + (length / 4) * 2 - 1;
    for (int i = 0; i < 3; ++i) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      int other = static_cast<int>(static_cast<unsigned>(random) & (modulus - 1));
      if (other >= length) other -= length;
      swap_(at - 1 + i, a + other);
    }
  }
  std::pair<int, Hint> choose_pivot(int a, int b) {
    constexpr int kShortestNinther = 50, kMaxSwaps = 4 * 3;
    const int length = b - a;
    int swaps = 0;
    int i = a + length / 4 * 1, j = a + length / 4 * 2, k = a + length / 4 * 3;
    if (length >= 8) {
      if (length >= kShortestNinther) {
        i = median_adjacent(i, swaps);
        j = median_adjacent(j, swaps);
        k = median_adjacent(k, swaps);
      }
      j = median(i, j, k, swaps);
    }
    if (swaps == 0) return {j, Hint::kIncreasing};
    if (swaps == kMaxSwaps) return {j, Hint::kDecreasing};
    return {j, Hint::kUnknown};
  }
  void order2(int& a, int& b, int& swaps) {
    if (less_(b, a)) {
      ++swaps;
      std::swap(a, b);
    }
  }
  int median(int a, int b, int c, int& swaps) {
    order2(a, b, swaps);
    order2(b, c, swaps);
    order2(a, b, swaps);
    return b;
  }
  int median_adjacent(int a, int& swaps) { return median(a - 1, a, a + 1, swaps); }
  void reverse_range(int a, int b) {
    for (int i = a, j = b - 1; i < j; ++i, --j) swap_(i, j);
  }

  Less less_;
  Swap swap_;
};

}  // namespace berth::node::eviction
