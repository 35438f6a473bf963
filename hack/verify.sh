#!/usr/bin/env bash
# Fails when a generated file or a module file is not what its source makes of it. Changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
status=0

hack/generate.sh "$fresh"
while IFS= read -r file; do
  diff -u "$file" "$fresh/$file" || { echo "$file is not current: run 'make generate'" >&2; status=1; }
done < <(cd "$fresh" && find . -type f | sed 's|^\./||' | sort)

for module in . loaded test/agreement test/alerts lab/cluster lab/argo lab/helm; do
  (cd "$module" && go mod tidy -diff) || { echo "$module/go.mod is not tidy: run 'go mod tidy' there" >&2; status=1; }
done

exit $status
