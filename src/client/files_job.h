// The job of the files that are captured on one host (docs/decisions/0014): the one place that
// makes its name.
#pragma once

#include <string>
#include <string_view>

namespace backstay::client {

// `job`.files.`host`, as the name of a job may be: a character of the host's name that may not
// stand there becomes "-". Where the whole would be longer than a job's name may be, its end is
// replaced by a checksum of all of it, so that two hosts keep two names. Precondition: `job` is a
// good name of a job.
std::string files_job_name(std::string_view job, std::string_view host);
// The same on this host.
std::string files_job_name(std::string_view job);

}  // namespace backstay::client
