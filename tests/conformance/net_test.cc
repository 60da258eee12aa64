#include "net/loopback.h"
#include "net/lossy.h"
#include "net/tcp.h"
#include "net/ucx.h"
#include "net_conformance.h"
#include "net_random.h"

namespace backstay::testing {
namespace {

constexpr std::uint64_t moment_ns = 20'000'000;

// A network in this process whose clock moves whenever nothing else does.
struct Loopback {
  explicit Loopback(net::LoopbackOptions options = {}) : network(clock, options) {}
  ManualClock clock;
  net::LoopbackNetwork network;
};

NetUnderTest loopback(std::size_t ends) {
  auto own = std::make_shared<Loopback>();
  NetUnderTest under{own, {}, [clock = &own->clock] { clock->advance(moment_ns); }};
  for (std::size_t i = 0; i < ends; ++i)
    under.ends.push_back(own->network.make("end-" + std::to_string(i)));
  return under;
}

NetUnderTest tcp(std::size_t ends, bool with_ucx) {
  NetUnderTest under;
  const net::Secret secret = net::Secret::random();
  for (std::size_t i = 0; i < ends; ++i) {
    net::TcpOptions options{.secret = secret,
                            .identity = "end-" + std::to_string(i),
                            .device = "lo",
                            .dead_after_s = 1};
    under.is_ucx = with_ucx;
    if (with_ucx) options.bulk = net::make_ucx({.devices = "lo", .transports = "tcp"}).value();
    auto end = net::make_tcp(std::move(options));
    EXPECT_TRUE(is_ok(end));
    under.ends.push_back(std::move(end).value());
  }
  return under;
}

NetUnderTest plain_tcp(std::size_t ends) { return tcp(ends, false); }

bool has_ucx() { return net::make_ucx({.devices = "lo", .transports = "tcp"}).ok(); }

// Each end behind a lossy wrapper with a seed of its own. `clock`: that of the ends.
NetUnderTest lossy(NetUnderTest under, const Clock& clock, net::LossyPlan plan) {
  for (auto& end : under.ends) {
    end = net::make_lossy(std::move(end), clock, plan);
    ++plan.seed;
  }
  return under;
}
NetUnderTest lossy_loopback(std::size_t ends, const net::LossyPlan& plan) {
  NetUnderTest under = loopback(ends);
  const Clock& clock = static_cast<Loopback*>(under.network.get())->clock;
  return lossy(std::move(under), clock, plan);
}

// Networks on which nothing fails.
std::vector<NetCase> sound() {
  std::vector<NetCase> cases = {
      {"Loopback", loopback},
      {"Tcp", plain_tcp},
      {"LossyLoopbackWithoutFaults", [](std::size_t ends) { return lossy_loopback(ends, {}); }},
      {"LossyLoopbackDelayed",
       [](std::size_t ends) {
         return lossy_loopback(ends, {.seed = test::seed(), .delay_s_max = 0.3});
       }},
      {"LossyTcpDelayed",
       [](std::size_t ends) {
         return lossy(plain_tcp(ends), system_clock(), {.seed = test::seed(), .delay_s_max = 0.01});
       }},
  };
  if (has_ucx()) cases.push_back({"Ucx", [](std::size_t ends) { return tcp(ends, true); }});
  return cases;
}

std::vector<NetCase> all() {
  auto cases = sound();
  constexpr net::LossyPlan faults{.delay_s_max = 0.05,
                                  .cut_one_in = 100,
                                  .unreachable_one_in = 5,
                                  .busy_one_in = 5,
                                  .refused_one_in = 5};
  cases.push_back({"LossyLoopback",
                   [=](std::size_t ends) {
                     auto plan = faults;
                     plan.seed = test::seed();
                     return lossy_loopback(ends, plan);
                   },
                   true});
  cases.push_back({"LossyTcp",
                   [=](std::size_t ends) {
                     auto plan = faults;
                     plan.seed = test::seed();
                     return lossy(plain_tcp(ends), system_clock(), plan);
                   },
                   true});
  if (has_ucx())
    cases.push_back({"LossyUcx",
                     [=](std::size_t ends) {
                       auto plan = faults;
                       plan.seed = test::seed();
                       return lossy(tcp(ends, true), system_clock(), plan);
                     },
                     true});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, NetConformance, ::testing::ValuesIn(sound()), net_case_name);
INSTANTIATE_TEST_SUITE_P(All, NetRandom, ::testing::ValuesIn(all()), net_case_name);

}  // namespace
}  // namespace backstay::testing
