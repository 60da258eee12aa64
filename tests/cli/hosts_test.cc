#include "bin/run/hosts.h"

#include <gtest/gtest.h>

#include "bin/run/host_choice.h"
#include "bin/run/slurm.h"

namespace backstay::bin {
namespace {

using Names = std::vector<std::string>;

std::vector<Host> file(const std::string& text) {
  auto hosts = parse_host_file(text, "hosts");
  EXPECT_TRUE(hosts.ok()) << (hosts.ok() ? "" : hosts.error().message());
  return hosts.ok() ? *hosts : std::vector<Host>{};
}

std::string refusal(const std::string& text) {
  const auto hosts = parse_host_file(text, "hosts");
  return hosts.ok() ? "" : hosts.error().message();
}

TEST(Hosts, BothWaysOfWritingAFile) {
  const std::vector<Host> expected{{"n0", 4, ""}, {"n1", 2, "max_slots=4"}, {"u@n2.b.org", 0, ""}};
  EXPECT_EQ(file("# ours\nn0 slots=4\n\n  n1 slots=2 max_slots=4 # old\r\nu@n2.b.org"), expected);
  EXPECT_EQ(file("n0:4\nn1:2 max_slots=4\nu@n2.b.org\n"), expected);
  EXPECT_EQ(file("n0 slots = 4\nn1\tslots= 2 max_slots =4\nu@n2.b.org \n"), expected);
  EXPECT_EQ(file("fe80::1\n").front(), (Host{"fe80::1", 0, ""}));
}

TEST(Hosts, AHostThatIsNamedTwiceHasTheSum) {
  EXPECT_EQ(file("n0\nn1\nn0\n"), (std::vector<Host>{{"n0", 2, ""}, {"n1", 0, ""}}));
  EXPECT_EQ(file("n0 slots=2\nn0 slots=3\n").front().slots, 5u);
  EXPECT_EQ(*parse_host_list("n0,n1:3,n0"), (std::vector<Host>{{"n0", 2, ""}, {"n1", 3, ""}}));
}

TEST(Hosts, WhatIsNoHostIsRefusedWithItsPlace) {
  EXPECT_EQ(refusal("# nobody\n"), "hosts names no host");
  EXPECT_EQ(refusal("n0\n-oProxyCommand=x\n"),
            "hosts:2: \"-oProxyCommand=x\" is no name of a host");
  EXPECT_EQ(refusal("n0;reboot"), "hosts:1: \"n0;reboot\" is no name of a host");
  EXPECT_EQ(refusal("n0 slots=many"), "hosts:1: \"slots=many\" gives no number of slots");
  EXPECT_EQ(refusal("n0:0"), "hosts:1: \"0\" is no number of slots in \"n0:0\"");
  EXPECT_EQ(refusal("n0:99999999999"),
            "hosts:1: \"99999999999\" is no number of slots in \"n0:99999999999\"");
  EXPECT_EQ(refusal("n0:2 n1:2"), "hosts:1: \"n1:2\" follows a host; write one host a line");
  EXPECT_EQ(refusal("n0\n= 2"), "hosts:2: \"=2\" is no name of a host");
  EXPECT_FALSE(parse_host_list(",").ok());
}

TEST(Hosts, WrittenForEachLauncher) {
  const std::vector<Host> hosts{{"n0", 4, "ifname=eth0"}, {"n1", 0, ""}};
  EXPECT_EQ(host_file_text(hosts, LauncherKind::openmpi), "n0 slots=4 ifname=eth0\nn1\n");
  EXPECT_EQ(host_file_text(hosts, LauncherKind::mpich), "n0:4 ifname=eth0\nn1\n");
}

HostChoice choice(const std::string& text, unsigned spares) {
  return *HostChoice::make(file(text), spares);
}

TEST(HostChoice, ASpareStandsWhereTheLostHostStood) {
  auto hosts = choice("n0:2\nn1:2\nn2:2\nn3:2\nn4:2\n", 2);
  EXPECT_EQ(names_text(hosts.in_use()), "n0, n1, n2");
  const auto change = hosts.lose({"n1"}, 6);
  EXPECT_EQ(change.lost, Names{"n1"});
  EXPECT_EQ(change.taken, Names{"n3"});
  EXPECT_EQ(names_text(hosts.in_use()), "n0, n3, n2");
  EXPECT_EQ(names_text(hosts.spares()), "n4");
}

TEST(HostChoice, ADeadSpareIsNotTaken) {
  auto hosts = choice("n0:2\nn1:2\nn2:2\nn3:2\n", 2);
  const auto change = hosts.lose({"n0", "n2"}, 4);
  EXPECT_EQ(change.lost, Names{"n0"});
  EXPECT_EQ(change.taken, Names{"n3"});
  EXPECT_EQ(names_text(hosts.in_use()), "n3, n1");
  EXPECT_TRUE(hosts.lose({"n7"}, 4).lost.empty());
}

TEST(HostChoice, MoreSparesWhereOneHasTooFewSlots) {
  auto hosts = choice("n0:4\nn1:4\nn2:1\nn3:1\nn4:2\n", 3);
  const auto change = hosts.lose({"n1"}, 7);
  EXPECT_EQ(change.taken, (Names{"n2", "n3", "n4"}));
  EXPECT_TRUE(hosts.enough_for(8));
  EXPECT_FALSE(hosts.enough_for(9));
}

TEST(HostChoice, WithoutSparesFewerSlotsAreLeft) {
  auto hosts = choice("n0:2\nn1:2\nn2:2\n", 0);
  EXPECT_TRUE(hosts.lose({"n2"}, 6).taken.empty());
  EXPECT_FALSE(hosts.enough_for(6));
  EXPECT_TRUE(hosts.enough_for(4));
  hosts.lose({"n0", "n1"}, 4);
  EXPECT_FALSE(hosts.enough_for(0));
}

TEST(HostChoice, UnknownSlotsAreForTheLauncherToJudge) {
  auto hosts = choice("n0\nn1:2\n", 0);
  EXPECT_TRUE(hosts.enough_for(100));
  EXPECT_FALSE(HostChoice::make(file("n0\nn1\n"), 2).ok());
}

TEST(Slurm, ProcessorsOfEachNode) {
  EXPECT_EQ(parse_counts("2(x3),4"), (std::vector<unsigned>{2, 2, 2, 4}));
  EXPECT_EQ(parse_counts("8"), std::vector<unsigned>{8});
  EXPECT_TRUE(parse_counts("").empty());
  EXPECT_TRUE(parse_counts("2,x").empty());
  EXPECT_TRUE(parse_counts("2(x4000000000)").empty());
}

}  // namespace
}  // namespace backstay::bin
