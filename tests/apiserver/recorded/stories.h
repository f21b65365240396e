// Requests whose answers are recorded (README.md here).
#pragma once
#include <string>
#include <vector>

namespace berth::testing {

struct StoryRequest {
  std::string method, path, type, body, accept;
};

struct Story {
  std::string name;  ///< Letters, digits and "_"; unique.
  std::vector<StoryRequest> requests;
};

/// From good.yaml here, from tests/model/cases, and for every kind what needs no object of it. In the order of their names' sources.
std::vector<Story> make_stories();

}  // namespace berth::testing
