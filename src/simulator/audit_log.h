// A recorded day out of an API server's audit log: JSON lines of audit.k8s.io/v1 (kube-apiserver's --audit-log-path, berth server's).
//
// At level RequestResponse every write's answer is the whole object; at level Request what was sent is taken, and patches are merged into
// what is known. Reads help, too: what a list shows was there. Lines about other kinds than a recording has, failed requests, dry runs and
// other stages than ResponseComplete say nothing.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "simulator/recording.h"

namespace berth::simulator {

/// Whether a file's first line is an audit event.
bool is_audit_line(std::string_view line);

struct AuditDay {
  RecordingHead head;                 ///< Begins with the first event of the log.
  std::vector<RecordedEvent> events;  ///< In order of time.
  std::vector<std::string> notes;     ///< What the log does not say.
};

/// Reads the logs of one cluster, of one API server or several, rotated or not, in any order: lines are put in order of their time stamps.
/// What was there before the log began comes as added at its beginning, as far as the log shows it. The error names file and line: not
/// JSON, no audit event, no time; or says that the level is too low to replay anything.
Result<AuditDay> read_audit_logs(const std::vector<std::string>& files);

}  // namespace berth::simulator
