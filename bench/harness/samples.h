// Samples, their median, and the comparison of two medians with a target.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace backstay::bench {

// Precondition: not empty.
double median(std::vector<double> samples);

// Samples by key ("blocked_s"), in the order of the measurements.
class Samples {
 public:
  void add(const std::string& key, double value) { values_[key].push_back(value); }
  bool has(const std::string& key) const { return values_.count(key) != 0; }
  double median_of(const std::string& key) const { return median(values_.at(key)); }
  const std::vector<double>& of(const std::string& key) const { return values_.at(key); }
  // Puts every median at the top level of `json`, and all samples below "samples".
  void write_to(nlohmann::json& json) const;

 private:
  std::map<std::string, std::vector<double>> values_;
};

// What a benchmark claims: ours is at most `target` times the limit. Never fails a run.
struct Ratio {
  std::string name;   // "blocked_over_memcpy"
  std::string ours;   // key of the samples
  std::string limit;  // key of the samples
  double target = 0;
};

// {"name": {"ours": s, "limit": s, "value": ratio, "target": t, "reached": bool}, ...}
nlohmann::json compare(const Samples& samples, const std::vector<Ratio>& ratios);

// Ends the program with a message on standard error.
[[noreturn]] void die(const std::string& message);

}  // namespace backstay::bench
