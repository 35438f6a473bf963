#!/usr/bin/env bash
# Fuzzes every target of the packages that parse what others wrote, one after the other: hack/fuzz.sh [TIME, default 10m].
set -euo pipefail
cd "$(dirname "$0")/.."

for package in ./internal/keys ./internal/yamltree; do
  for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz'); do
    echo "fuzz $package $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-10m}" -parallel 2 "$package"
  done
done
