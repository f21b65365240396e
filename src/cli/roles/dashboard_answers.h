// What the dashboard's page asks of the engine: explain and what-if over the live cluster, read anew for each question, as the user.
#pragma once
#include "cli/command/session.h"
#include "dashboard/dashboard.h"

namespace berth::cli {

dashboard::Answers dashboard_answers(const ConnectionFlags& connection);

}  // namespace berth::cli
