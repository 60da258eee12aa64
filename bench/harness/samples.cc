#include "bench/harness/samples.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace backstay::bench {

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  if (samples.size() % 2 == 1) return samples.at(middle);
  return (samples.at(middle - 1) + samples.at(middle)) / 2;
}

void Samples::write_to(nlohmann::json& json) const {
  for (const auto& [key, values] : values_) {
    json[key] = median(values);
    json["samples"][key] = values;
  }
}

nlohmann::json compare(const Samples& samples, const std::vector<Ratio>& ratios) {
  nlohmann::json all = nlohmann::json::object();
  for (const Ratio& ratio : ratios) {
    const double ours = samples.median_of(ratio.ours);
    const double limit = samples.median_of(ratio.limit);
    all[ratio.name] = {{"ours", ours},
                       {"limit", limit},
                       {"value", ours / limit},
                       {"target", ratio.target},
                       {"reached", ours / limit <= ratio.target}};
  }
  return all;
}

void die(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  _exit(1);
}

}  // namespace backstay::bench
