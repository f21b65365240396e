// What a run was, for people and for programs: text, JSON, CSV.
#pragma once
#include <string>
#include <vector>

#include "simulator/simulation.h"

namespace berth::simulator {

/// "6d 04:30", "04:30", "00:00:10": a time of a run.
std::string show_time(Duration at);
/// Whether all that had to hold does, in a sentence; then how it went, what matters first, a sentence each.
std::vector<std::string> verdict_of(const Outcome& outcome);
/// "57.60 EUR"; "57.60 units" where nobody says of what.
std::string money(double amount, const Outcome& outcome);
/// A summary of 80 columns or so.
std::string to_text(const Outcome& outcome);
/// Everything: figures, series, what happened, what failed.
json::Value to_json(const Outcome& outcome);
/// The series, a line a sample, a column a figure.
std::string to_csv(const Outcome& outcome);

}  // namespace berth::simulator
