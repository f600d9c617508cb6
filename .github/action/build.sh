#!/usr/bin/env bash
# Finds or builds the spotter to run and what to compare with, and writes where
# they are to $GITHUB_OUTPUT: spotter; commit, the one to compare with; files, a
# folder with the files of that commit; and base, another spotter. The last three
# are empty for none.
#
# Where the repository is Spotter's own, the base is built from the commit too.
# Elsewhere the same spotter runs the files of both.
set -euo pipefail

work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/spotter.XXXXXX")
module=github.com/spotter-dev/spotter

build() { # folder, target
  local version
  version=$(git -C "$1" describe --tags --always --dirty 2>/dev/null || echo unknown)
  (cd "$1" && go build -buildvcs=false -trimpath -tags=grpcnotrace -ldflags "-s -w -X main.version=$version" -o "$2" ./cmd/spotter)
}

ours() { # whether the repository is Spotter's own
  [ -f go.mod ] && grep -qx "module $module" go.mod
}

spotter=${BINARY:-}
if [ -z "$spotter" ]; then
  spotter=$work/spotter
  if ours; then build "$PWD" "$spotter"; else build "$ACTION_PATH" "$spotter"; fi
fi
if [ ! -x "$spotter" ]; then
  echo "::error title=spotter::binary: $spotter is no program" && exit 2
fi
spotter=$(realpath "$spotter")

commit=${COMPARE:-}
if [ -z "$commit" ]; then commit=${BASE_SHA:-}; fi
base=${BASE_BINARY:-} files=''
if [ "$commit" = none ]; then
  commit='' base=''
elif [ -n "$commit" ]; then
  # A shallow checkout has not got the commit.
  git rev-parse --verify --quiet "$commit^{commit}" >/dev/null || git fetch --quiet --depth=1 origin "$commit" || {
    echo "::error title=spotter::compare: there is no commit $commit" && exit 2
  }
  commit=$(git rev-parse --verify --quiet "$commit^{commit}" || git rev-parse FETCH_HEAD)
fi
if [ -n "$base" ]; then
  if [ ! -x "$base" ]; then
    echo "::error title=spotter::base-binary: $base is no program" && exit 2
  fi
  base=$(realpath "$base")
fi
if [ -n "$commit" ]; then
  files=$work/${commit:0:12}
  git worktree add --quiet --detach "$files" "$commit"
  if [ -z "$base" ] && ours; then
    base=$work/spotter-base
    build "$files" "$base"
  fi
fi
{
  echo "spotter=$spotter"
  echo "base=$base"
  echo "files=$files"
  echo "commit=$commit"
} >>"$GITHUB_OUTPUT"
