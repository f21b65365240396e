// The kinds of the group, as discovery lists them.
#include "model/kinds/record.h"

namespace berth::model::kinds {
KindInfo cron_job();
KindInfo job();
KindInfo cron_job_v1beta1();

std::vector<KindInfo> batch_group() { return {cron_job(), job(), cron_job_v1beta1()}; }

}  // namespace berth::model::kinds
