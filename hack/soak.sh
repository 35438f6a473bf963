#!/usr/bin/env bash
# Plays the long form of every test that has one: hack/soak.sh [SHARDS, default 2]. Tests of random steps wait more than they
# compute, so that many processes share the steps of each, with a lab and a seed of their own. Logs go to bin/soak, and say how far
# each is. TIDEMARK_FOR=30m ends each test of random steps after that time, whatever it did by then.
set -euo pipefail
cd "$(dirname "$0")/.."

shards=${1:-2}
seed=${TIDEMARK_SEED:-$(date +%s)} # of the first; each other has the next
shared=(TestSoakEveryContainerReadsWhatItsRevisionPins TestSoakEvidenceThatIsStatedIsTrue TestSoakEvidenceIsKnownWhereStepsAreApart)
logs=$PWD/bin/soak
race=${RACE--race} # as the Makefile says, where there is a C compiler
failed=0

rm -rf "$logs"
mkdir -p "$logs"
export TIDEMARK_SOAK=1
# shellcheck disable=SC2086 # no word where there is no race detector
go test $race -vet=off -c -o "$logs/acceptance.test" ./test/acceptance
cd test/acceptance # where its files are

# play NAME ARGUMENT…: runs the tests and keeps what they say.
play() {
  local name=$1
  shift
  if "$logs/acceptance.test" -test.v -test.timeout 0 "$@" >"$logs/$name.log" 2>&1; then
    echo "ok      $name"
  else
    echo "FAILED  $name: see bin/soak/$name.log"
    return 1
  fi
}

for test in "${shared[@]}"; do
  running=()
  for ((i = 1; i <= shards; i++)); do
    TIDEMARK_SHARDS=$shards TIDEMARK_SEED=$((seed + i - 1)) play "$test-$i" -test.run "^$test\$" &
    running+=($!)
  done
  for process in "${running[@]}"; do
    wait "$process" || failed=1
  done
done
play others -test.run Soak -test.skip "^($(IFS='|'; echo "${shared[*]}"))\$" || failed=1

cd ../..
echo "random worlds"
# shellcheck disable=SC2086
TIDEMARK_WORLDS=600000 go test $race -vet=off -timeout 0 -count=1 ./internal/fleet || failed=1
exit "$failed"
