#!/usr/bin/env bash
# Fuzzes every target of every module, one after the other: hack/fuzz.sh [TIME of each, default 10m].
set -euo pipefail
cd "$(dirname "$0")/.."

for module in . test/agreement; do
  (
    cd "$module"
    # Only packages that have targets: the others' tests would be built for nothing.
    grep -rl --include='*_test.go' '^func Fuzz' . | while IFS= read -r file; do dirname "$file"; done | sort -u | while IFS= read -r package; do
      [ "$(go list -f '{{.Module.Path}}' "./$package" 2>/dev/null)" = "$(go list -m)" ] || continue # of a module inside this one
      for target in $(go test -list '^Fuzz' "./$package" | grep '^Fuzz'); do
        echo "fuzz $module $package $target"
        go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-10m}" -parallel 2 "./$package" </dev/null
      done
    done
  )
done
