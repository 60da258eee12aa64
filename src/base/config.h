// The configuration: one TOML file, a default for every key, the unit in the key's name.
//
// The table of keys in config_keys.cc is the one place that knows name, default, range and meaning;
// load_config(), `backstay config --explain` and docs/guide/configuration.md all come from it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace backstay {

struct Config {
  struct Job {
    std::string name;  // "" : the program's file name
  } job;
  struct Storage {
    std::string dir;         // "" : /var/tmp/backstay-<user>
    std::uint32_t keep = 2;  // complete versions to keep, at least 1
  } storage;
  struct Durable {
    std::string dir;                     // "" : none
    std::uint32_t every = 1;             // versions
    std::uint32_t keep = 2;              // complete versions there, at least 1
    std::uint64_t rate_limit_mib_s = 0;  // 0: none
    double stop_timeout_s = 60;          // an agent that is asked to end
  } durable;
  struct Strategy {              // how ranks write versions where no agent runs
    std::string name = "agent";  // agent, file_per_process, collective, writers
    std::uint32_t files = 0;     // of a version; 0: one a rank, one, or one a writer
    std::uint32_t ranks_per_writer = 64;
    std::uint32_t buffer_mib = 64;  // of each rank that writes
    std::uint32_t align_kib = 0;    // 0: the file system's block
    std::string hints;              // of MPI-IO: "key=value;key=value"
  } strategy;
  struct Drain {                  // with several nodes
    std::uint32_t nodes_max = 0;  // that copy to the durable directory at once; 0: all
  } drain;
  struct Checkpoint {
    std::string policy = "daly";    // daly, interval, calls, request
    double interval_s = 3600;       // policy interval
    std::uint64_t every_calls = 0;  // policy calls: every n-th backstay_due() is true
    double mtti_s = 86400;          // policy daly: mean time to interrupt of the whole job
    bool strict = false;            // a failed checkpoint ends the program
    bool wait_at_end = false;       // finalize waits for level local
    double cut_timeout_s = 60;      // ranks of an unmodified MPI program agree on a cut
    std::uint32_t full_every = 8;   // versions of an unmodified program; 1: all are full
    std::string snapshot = "auto";  // of an unmodified program's memory: auto, copy, fork
  } checkpoint;
  struct Capture {                   // of files that programs write
    std::string close = "captured";  // what close waits for: captured, local, home
    std::string fsync = "local";     // what fsync waits for: local, home
  } capture;
  struct Pool {
    std::uint64_t size_mib = 0;  // 0: the smaller of 1024 and 1/16 of the memory
    std::uint32_t buffer_mib = 4;
    bool huge_pages = true;  // use them where the system has them
  } pool;
  struct Writer {
    std::uint32_t depth = 8;  // requests in flight
    bool direct = true;       // O_DIRECT where possible
    bool io_uring = true;     // where possible
  } writer;
  struct Network {             // between the agents of a job on several nodes
    std::string device;        // of the checkpoint network; "" : all
    std::uint32_t port = 0;    // 0: any that is free
    double dead_after_s = 10;  // silence after which an agent is taken for dead
    double heartbeat_s = 1;    // a tick of the tree
  } network;
  struct Protect {               // copies on other nodes
    std::uint32_t replicas = 1;  // 0: none
    std::string parity;          // "k,m", in place of replicas; "": none
    std::uint32_t buffers = 8;
    std::uint64_t rate_limit_mib_s = 0;  // 0: none
    std::string domain;                  // of this node; see base/domain.h
    std::string domain_file;
  } protect;
  struct Metrics {  // of the agent, over HTTP
    std::string address = "127.0.0.1";
    std::uint32_t port = 0;  // 0: none
  } metrics;
  struct Agent {
    std::string socket;    // "" : wire::default_socket_path()
    std::string program;   // "" : backstayd beside the library, then PATH
    std::string log_file;  // "" : <socket folder>/agent.log
    std::string log_level = "info";
    std::uint32_t nice = 0;    // 0 to 19
    double idle_exit_s = 600;  // exit after this long without a program; 0: never
    double start_timeout_s = 30;
    double hang_timeout_s = 60;  // an agent that is silent for this long has hung; 0: never
  } agent;
};

// Whether agents keep the job's versions; else its ranks do, in durable.dir.
inline bool uses_agents(const Config& config) { return config.strategy.name == "agent"; }

struct ConfigKey {
  std::string name;         // "storage.keep"
  std::string type;         // "text", "number", "integer", "boolean"
  std::string initial;      // as written in the file
  std::string range;        // "1 to 1000", "one of daly, interval, ..."; "" where anything goes
  std::string meaning;      // one line
  std::string environment;  // BACKSTAY_STORAGE_KEEP
};

// All keys in the order of the file.
std::vector<ConfigKey> config_keys();

// The current value of every key as text, same order as config_keys().
std::vector<std::string> config_values(const Config& config);

// Key and current value, as text, of the settings that an agent keeps from its start to its end. A
// program that finds the agent alive may have others in its own configuration.
std::vector<std::pair<std::string, std::string>> agent_settings(const Config& config);

// Finds the file: `path` if given, else $BACKSTAY_CONFIG, ./backstay.toml, ~/.config/backstay.toml;
// "" where there is none of them. A path that was named but is missing is an error (config).
Result<std::string> find_config(const std::string& path);

// durable.dir and storage.dir do not lie in each other. Errors: config.
Status check_paths(const Config& config);

// Reads the file ("" : defaults only), then the environment: BACKSTAY_JOB, BACKSTAY_DIR and
// BACKSTAY_<SECTION>_<KEY> (upper case) override single keys. Resolves the empty defaults above
// (dir, pool size). Paths may begin with "~/"; a relative path in the file counts from the file's
// folder, one in the environment from the working directory.
// Errors: config, naming file, line, column, and for an unknown key the nearest one.
Result<Config> load_config(const std::string& path);

// One sentence for each variable of the environment that begins with BACKSTAY_ and that nothing
// reads. It names the nearest variable that exists. Variables that are surely typing errors are
// errors of load_config() instead.
std::vector<std::string> unknown_variables();

// The same from text; messages name `origin` in place of the file. Does not look at the
// environment.
Result<Config> parse_config(const std::string& text, const std::string& origin);

}  // namespace backstay
