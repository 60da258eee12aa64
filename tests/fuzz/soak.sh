#!/bin/bash
# Builds the fuzzers with clang and lets each run for a while from its seeds. What they find is left
# under build/fuzz/found, with the command to repeat it.
#   BACKSTAY_FUZZ_SECONDS  seconds a parser (10)
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${BACKSTAY_FUZZ_SECONDS:-10}
cmake=${CMAKE:-cmake}
"$cmake" --preset fuzz >/dev/null
"$cmake" --build --preset fuzz
mkdir -p build/fuzz/found
export UBSAN_OPTIONS=print_stacktrace=1
failed=0
for seeds in tests/fuzz/corpus/*/; do
  parser=$(basename "$seeds")
  work=build/fuzz/corpus/$parser
  mkdir -p "$work"
  dictionary=()
  if [ -f "tests/fuzz/$parser.dict" ]; then dictionary=(-dict="tests/fuzz/$parser.dict"); fi
  log=build/fuzz/$parser.log
  if "build/fuzz/tests/fuzz/fuzz_$parser" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -max_len=8192 "${dictionary[@]}" -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$parser-" "$work" "$seeds" >"$log" 2>&1; then
    printf '%-9s %s inputs\n' "$parser" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    tail -n 60 "$log"
    echo "$parser: FAILED; see build/fuzz/found and $log"
    failed=1
  fi
done
exit $failed
