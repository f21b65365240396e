// What a Program holds. Internal to the folder.
#pragma once
#include "cel/ast.h"

namespace berth::cel {

struct Program::Impl {
  NodePtr root;
  Type output_type;
  CostEstimate estimate;
};

}  // namespace berth::cel
