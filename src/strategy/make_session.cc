#include <utility>

#include "client/job_start.h"
#include "client/program_session.h"
#include "client/session.h"
#include "strategy/session.h"

namespace backstay::client {

Result<std::unique_ptr<ProgramSession>> make_session(const Group& group, const char* config,
                                                     const backstay_transport* transport) {
  BACKSTAY_ASSIGN(JobStart job, begin_job(group, config));
  if (!uses_agents(job.config))
    return strategy::FileSession::start(group, std::move(job), transport);
  BACKSTAY_ASSIGN(std::unique_ptr<ProgramSession> session, Session::start(group, std::move(job)));
  return session;
}

}  // namespace backstay::client
