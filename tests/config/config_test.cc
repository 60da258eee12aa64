#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/machine.h"

namespace backstay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Config good(const std::string& text) {
  auto config = parse_config(text, "f.toml");
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().to_string());
  return config.ok() ? *config : Config{};
}

std::string message(const std::string& text) {
  const auto config = parse_config(text, "f.toml");
  if (config.ok()) return "(accepted)";
  EXPECT_EQ(config.error().code(), Code::config);
  return config.error().message();
}

// Sets a variable for one test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Config, EmptyTextGivesResolvedDefaults) {
  const Config config = good("");
  EXPECT_EQ(config.storage.dir, "/var/tmp/backstay-" + user_name());
  EXPECT_GE(config.pool.size_mib, 8u);
  EXPECT_LE(config.pool.size_mib, 1024u);
  EXPECT_EQ(config.storage.keep, 2u);
  EXPECT_EQ(config.checkpoint.policy, "daly");
}

TEST(Config, EveryKeyTakesItsInitialValue) {
  // The value that config_keys() gives for the file must be accepted there, key by key.
  for (const ConfigKey& key : config_keys()) {
    const auto dot = key.name.find('.');
    const std::string text =
        "[" + key.name.substr(0, dot) + "]\n" + key.name.substr(dot + 1) + " = " + key.initial;
    EXPECT_EQ(message(text), "(accepted)") << text;
    EXPECT_FALSE(key.meaning.empty());
  }
}

TEST(Config, ReadsEveryType) {
  const Config config = good(
      "[job]\nname = \"lj\"\n[storage]\ndir = \"/x/y\"\nkeep = 5\n[checkpoint]\ninterval_s = 2.5\n"
      "mtti_s = 100\nstrict = true\n[pool]\nsize_mib = 64\nbuffer_mib = 2\n");
  EXPECT_EQ(config.job.name, "lj");
  EXPECT_EQ(config.storage.dir, "/x/y");
  EXPECT_EQ(config.storage.keep, 5u);
  EXPECT_DOUBLE_EQ(config.checkpoint.interval_s, 2.5);
  EXPECT_DOUBLE_EQ(config.checkpoint.mtti_s, 100);  // an integer is a number
  EXPECT_TRUE(config.checkpoint.strict);
  EXPECT_EQ(config.pool.size_mib, 64u);
  EXPECT_EQ(config.pool.buffer_mib, 2u);
}

TEST(Config, ValuesStandInTheOrderOfTheKeys) {
  const Config config = good("[storage]\nkeep = 7\ndir = '/a \"b\"'\n");
  const auto keys = config_keys();
  const auto values = config_values(config);
  ASSERT_EQ(keys.size(), values.size());
  std::map<std::string, std::string> by_name;
  for (std::size_t i = 0; i < keys.size(); ++i) by_name[keys[i].name] = values[i];
  EXPECT_EQ(by_name["storage.keep"], "7");
  EXPECT_EQ(by_name["storage.dir"], "\"/a \\\"b\\\"\"");
}

TEST(Config, AnAgentsSettingsAreTextAsInTheFile) {
  const auto all = agent_settings(good("[pool]\nsize_mib = 64\n[network]\ndevice = 'ib0'\n"));
  const std::map<std::string, std::string> by_name(all.begin(), all.end());
  EXPECT_EQ(by_name.at("pool.size_mib"), "64");
  EXPECT_EQ(by_name.at("network.device"), "\"ib0\"");
  EXPECT_EQ(by_name.at("writer.direct"), "true");
  EXPECT_EQ(by_name.at("agent.nice"), "0");
  EXPECT_FALSE(by_name.contains("storage.keep")) << "each program has its own";
}

TEST(Config, UnknownKeyNamesPlaceAndNearest) {
  EXPECT_EQ(message("[storage]\n\nkepe = 3\n"),
            "f.toml:3:1: unknown key \"storage.kepe\"; did you mean \"storage.keep\"?");
  EXPECT_THAT(message("[agent]\ninterval_s = 3\n"),
              HasSubstr("did you mean \"checkpoint.interval_s\"?"));
  EXPECT_THAT(message("keep = 3\n"),
              HasSubstr("did you mean \"storage.keep\"? It belongs under [storage]"));
}

TEST(Config, UnknownSectionNamesNearest) {
  EXPECT_EQ(message("[storge]\nkeep = 3\n"),
            "f.toml:1:2: unknown section [storge]; did you mean [storage]?");
  EXPECT_THAT(message("storage = 3\n"), HasSubstr("storage is a section; write it as [storage]"));
  EXPECT_THAT(message("[storage.deep]\nkeep = 1\n"), HasSubstr("unknown key \"storage.deep\""));
}

TEST(Config, WrongTypeNamesPlaceAndExample) {
  EXPECT_EQ(message("[storage]\nkeep = \"two\"\n"),
            "f.toml:2:8: storage.keep must be an integer, not string; for example: keep = 2");
  EXPECT_THAT(message("[storage]\nkeep = 2.0\n"), HasSubstr("must be an integer"));
  EXPECT_THAT(message("[storage]\ndir = 3\n"), HasSubstr("text in quotes"));
  EXPECT_THAT(message("[checkpoint]\nstrict = 1\n"), HasSubstr("boolean"));
  EXPECT_THAT(message("[checkpoint]\ninterval_s = true\n"), HasSubstr("number"));
  EXPECT_THAT(message("[storage]\nkeep = [1]\n"), HasSubstr("array"));
}

TEST(Config, OutOfRangeNamesTheRange) {
  EXPECT_EQ(message("[storage]\nkeep = 0\n"),
            "f.toml:2:8: storage.keep is 0; it must be 1 to 1000");
  EXPECT_THAT(message("[storage]\nkeep = -1\n"), HasSubstr("1 to 1000"));
  EXPECT_THAT(message("[storage]\nkeep = 99999999999999\n"), HasSubstr("1 to 1000"));
  EXPECT_THAT(message("[checkpoint]\ninterval_s = nan\n"), HasSubstr("it must be"));
  EXPECT_THAT(message("[checkpoint]\ninterval_s = inf\n"), HasSubstr("it must be"));
  EXPECT_THAT(message("[checkpoint]\npolicy = \"dayly\"\n"),
              HasSubstr("one of daly, interval, calls, request"));
  EXPECT_THAT(message("[job]\nname = \"../x\"\n"), StartsWith("f.toml:2:8: job.name: "));
  EXPECT_THAT(message("[storage]\ndir = \"/x\\u0000y\"\n"), HasSubstr("zero byte"));
  for (const std::string bad : {"x", "3", "3,", ",1", "3,1,1", "3, 1", "-3,1"}) {
    EXPECT_THAT(message("[protect]\nparity = \"" + bad + "\"\n"),
                AllOf(StartsWith("f.toml:2:10: protect.parity is"), HasSubstr("such as \"3,1\"")))
        << bad;
  }
  for (const std::string bad : {"9,9", "0,1", "3,0", "125,4", "4294967295,1"}) {
    EXPECT_THAT(message("[protect]\nparity = \"" + bad + "\"\n"),
                AllOf(StartsWith("f.toml:2:10: protect.parity: parity ("),
                      HasSubstr("1 to 4 parity blocks, and at most 128 together")))
        << bad;
  }
  for (const std::string good : {"3,1", "1,4", "124,4", ""})
    EXPECT_EQ(message("[protect]\nparity = \"" + good + "\"\n"), "(accepted)") << good;
}

TEST(Config, KeysThatMustFitTogether) {
  EXPECT_THAT(message("[pool]\nsize_mib = 7\n"), HasSubstr("set it to 8 or more"));
  EXPECT_THAT(message("[checkpoint]\npolicy = \"calls\"\n"), HasSubstr("checkpoint.every_calls"));
  EXPECT_EQ(
      message("[network]\nheartbeat_s = 5\ndead_after_s = 2.5\n"),
      "f.toml: network.heartbeat_s is 5 and network.dead_after_s is 2.5: a sign of life would "
      "come later than an agent is taken for dead; set network.heartbeat_s to 2.5 or less, "
      "or network.dead_after_s to 5 or more");
  EXPECT_THAT(message("[network]\ndead_after_s = 0.5\n"), HasSubstr("network.heartbeat_s is 1 "));
  EXPECT_EQ(message("[network]\nheartbeat_s = 5\ndead_after_s = 5\n"), "(accepted)");
}

TEST(Config, TheDurableDirectoryLiesApartFromTheStorageFolder) {
  const auto with = [](const std::string& durable) {
    return parse_config("[storage]\ndir = \"/disk/a\"\n[durable]\ndir = \"" + durable + "\"\n",
                        "f.toml");
  };
  for (const char* bad : {"/disk/a", "/disk/a/", "/disk/a/b", "/disk", "/"}) {
    const auto config = with(bad);
    ASSERT_FALSE(config.ok()) << bad;
    EXPECT_EQ(config.error().code(), Code::config);
    EXPECT_NE(config.error().message().find("durable.dir"), std::string::npos);
  }
  EXPECT_TRUE(with("/disk/ab").ok());
}

TEST(Config, BrokenTomlNamesPlace) {
  EXPECT_THAT(message("[storage]\nkeep = = 2\n"), StartsWith("f.toml:2:"));
  EXPECT_THAT(message("[storage]\nkeep = 1\nkeep = 2\n"), StartsWith("f.toml:3:"));
  EXPECT_THAT(message("\xff\xfe\n"), StartsWith("f.toml:1:"));
}

std::string dotted(std::size_t parts) {
  std::string key = "a";
  for (std::size_t part = 1; part < parts; ++part) key += part % 2 == 0 ? " . \"b.\"" : ".c";
  return key;
}

// The parser would end the program: it takes nested tables down by recursion.
TEST(Config, KeysThatNestTooDeepAreRefused) {
  for (const std::string& deep :
       {dotted(100'000) + " = 1\n", "[" + dotted(100'000) + "]\n", "[[" + dotted(9) + "]]\n",
        "a = { x = 1, " + dotted(100'000) + " = 1 }\n",
        "a = { x = \"\"\"y\"\"\"\", " + dotted(100'000) + " = 1 }\n"}) {
    EXPECT_THAT(message("# a.b.c.d.e.f.g.h.i.j\n" + deep), StartsWith("f.toml:2: a key has more"));
  }
  EXPECT_THAT(message("a = \"\"\"\n\"\n\"\"\"\n" + dotted(9) + " = 1"),
              StartsWith("f.toml:4: a key"));
}

TEST(Config, DotsThatNestNothingAreNoMatter) {
  const std::string dots = "/a.b.c.d.e.f.g.h.i.j.k";
  EXPECT_EQ(good("[storage] # a.b.c.d.e.f.g.h.i\ndir = \"" + dots + "\"\n").storage.dir, dots);
  EXPECT_EQ(good("[storage]\ndir = '" + dots + "'\n").storage.dir, dots);
  EXPECT_EQ(good("[storage]\ndir = \"\"\"" + dots + "\"\"\"\n").storage.dir, dots);
  EXPECT_THAT(message(dotted(8) + " = 1\n"), HasSubstr("unknown section [a]"));
  std::string nested = "x = 1.5";
  for (int level = 0; level < 200; ++level) nested = dotted(8) + " = { " + nested + " }";
  EXPECT_THAT(message(nested), HasSubstr("unknown section [a]"));
}

TEST(Config, EnvironmentOverridesFile) {
  char name[] = "/tmp/backstay-config-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string file = std::string(name) + "/c.toml";
  std::ofstream(file) << "[storage]\nkeep = 3\ndir = \"versions\"\n";
  EXPECT_EQ(load_config(file)->storage.dir, std::string(name) + "/versions");
  {
    const Variable keep("BACKSTAY_STORAGE_KEEP", "4"), dir("BACKSTAY_DIR", "/e"),
        job("BACKSTAY_JOB", "j");
    const auto config = load_config(file);
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(config->storage.keep, 4u);
    EXPECT_EQ(config->storage.dir, "/e");
    EXPECT_EQ(config->job.name, "j");
  }
  {
    const Variable home("HOME", "/h"), dir("BACKSTAY_STORAGE_DIR", "~/v");
    EXPECT_EQ(load_config("")->storage.dir, "/h/v");
  }
  std::filesystem::remove_all(name);
}

TEST(Config, EnvironmentErrorsNameTheVariable) {
  const auto refused = [](const char* name, const char* value) {
    const Variable variable(name, value);
    const auto config = load_config("");
    return config.ok() ? "(accepted)" : config.error().message();
  };
  EXPECT_THAT(refused("BACKSTAY_STORAGE_KEEP", "many"),
              HasSubstr("BACKSTAY_STORAGE_KEEP: \"many\" is not an integer"));
  EXPECT_THAT(refused("BACKSTAY_STORAGE_KEEP", "2.5"), HasSubstr("not an integer"));
  EXPECT_THAT(refused("BACKSTAY_STORAGE_KEEP", "2x"), HasSubstr("not an integer"));
  EXPECT_THAT(refused("BACKSTAY_STORAGE_KEEP", "0"), HasSubstr("it must be 1 to 1000"));
  EXPECT_THAT(refused("BACKSTAY_WRITER_DIRECT", "perhaps"), HasSubstr("true or false"));
  EXPECT_THAT(refused("BACKSTAY_JOB", "a/b"), HasSubstr("BACKSTAY_JOB: job.name"));
  EXPECT_THAT(refused("BACKSTAY_JOB", "a.tmp"), HasSubstr("'a.tmp' ends in .tmp"));
  EXPECT_EQ(refused("BACKSTAY_STORAGE_KEPT", "2"),
            "unknown environment variable BACKSTAY_STORAGE_KEPT; did you mean "
            "BACKSTAY_STORAGE_KEEP? Unset or rename one that is not meant for Backstay");
  EXPECT_EQ(refused("BACKSTAY_DIRR", "/x"),
            "unknown environment variable BACKSTAY_DIRR; did you mean BACKSTAY_DIR? Unset or "
            "rename one that is not meant for Backstay");
  EXPECT_EQ(refused("BACKSTAY_STORGE_KEEP", "2"),
            "unknown environment variable BACKSTAY_STORGE_KEEP; did you mean "
            "BACKSTAY_STORAGE_KEEP? Unset or rename one that is not meant for Backstay");
  for (const char* other :
       {"BACKSTAY_ATTEMPT", "BACKSTAY_FAILPOINT", "BACKSTAY_PYTHON", "BACKSTAY_OF_MY_BOAT"}) {
    EXPECT_EQ(refused(other, "1"), "(accepted)");
  }
}

TEST(Config, AVariableThatMeansNothingIsWarnedOf) {
  const auto warnings = [](const char* name) {
    ::setenv(name, "1", 1);
    const auto said = unknown_variables();
    ::unsetenv(name);
    return said;
  };
  for (const char* known :
       {"BACKSTAY_ATTEMPT", "BACKSTAY_FAILPOINT", "BACKSTAY_PYTHON", "BACKSTAY_DIR",
        "BACKSTAY_STORAGE_KEEP", "BACKSTAY_TEST_SEED", "BACKSTAY_FRESH", "BACKSTAY_PROGRAM",
        "BACKSTAY_DEFAULT_JOB", "BACKSTAY_LAUNCH", "BACKSTAY_FROM"}) {
    EXPECT_THAT(warnings(known), ::testing::IsEmpty()) << known;
  }
  const std::pair<const char*, const char*> nearest[] = {
      {"BACKSTAY_INTERVAL", "BACKSTAY_CHECKPOINT_INTERVAL_S "},
      {"BACKSTAY_INTERVAL_S", "BACKSTAY_CHECKPOINT_INTERVAL_S "},
      {"BACKSTAY_KEEP", "BACKSTAY_STORAGE_KEEP "},
      {"BACKSTAY_POLICY", "BACKSTAY_CHECKPOINT_POLICY "}};
  for (const auto& [name, near] : nearest) {
    EXPECT_THAT(warnings(name), ::testing::ElementsAre(::testing::AllOf(
                                    HasSubstr(std::string(name) + " means nothing"),
                                    HasSubstr(std::string("the nearest that does is ") + near))));
  }
  EXPECT_THAT(warnings("BACKSTAY_ATEMPTS"),
              ::testing::ElementsAre(HasSubstr("the nearest that does is BACKSTAY_ATTEMPT ")));
}

TEST(Config, ADirectoryIsNoConfiguration) {
  const auto config = load_config(::testing::TempDir());
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code(), Code::config);
  EXPECT_THAT(config.error().message(), HasSubstr("is a directory"));
}

TEST(Config, MissingFileIsAnErrorOnlyWhenNamed) {
  EXPECT_EQ(find_config("/nowhere/f.toml").error().code(), Code::config);
  const Variable home("HOME", "/nowhere");
  EXPECT_EQ(*find_config(""), "");
  const Variable named("BACKSTAY_CONFIG", "/nowhere/g.toml");
  EXPECT_THAT(find_config("").error().message(), HasSubstr("BACKSTAY_CONFIG"));
}

}  // namespace
}  // namespace backstay
