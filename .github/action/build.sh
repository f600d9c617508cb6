#!/usr/bin/env bash
# Finds, fetches or builds the spotter to run and what to compare with, and writes where
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

wrong() { # message
  echo "::error title=spotter::$1"
  exit 2
}

# released prints the release that ACTION_REF names: the tag vX.Y.Z itself, or that of the
# same commit as a tag such as v1, or of the commit.
released() {
  if [[ $ACTION_REF =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]]; then
    echo "$ACTION_REF"
    return
  fi
  git ls-remote --tags "$source" | awk -v ref="$ACTION_REF" '
    { name = $2; sub("^refs/tags/", "", name); sub(/\^\{\}$/, "", name); commit[name] = $1 }
    END {
      want = ref in commit ? commit[ref] : ref
      for (name in commit) if (commit[name] == want && name ~ /^v[0-9]+\.[0-9]+\.[0-9]+/) print name
    }' | sort -V | tail -n 1
}

fetch() { # version, target: takes the program from a release whose archive has the sum
  local archive sum got
  archive=spotter_$(uname -s)_$(uname -m).tar.gz
  sum=${CHECKSUM:-}
  if [ -z "$sum" ]; then
    sum=$(curl -fsSL --retry 3 "$source/releases/download/$1/checksums.txt" | awk -v name="$archive" '$2 == name { print $1 }') ||
      wrong "version: $source has no release $1: name another version, or set build to true"
  fi
  [ -n "$sum" ] || wrong "version: the release $1 has no $archive: set build to true"
  curl -fsSL --retry 3 -o "$work/$archive" "$source/releases/download/$1/$archive" || wrong "version: the release $1 has no $archive: set build to true"
  got=$({ sha256sum "$work/$archive" 2>/dev/null || shasum -a 256 "$work/$archive"; } | cut -d ' ' -f 1)
  [ "$got" = "$sum" ] || wrong "checksum: $archive of $1 has the SHA-256 $got and not $sum: it is not run"
  tar -xzf "$work/$archive" -C "$(dirname "$2")" spotter
}

source=${SOURCE:-https://github.com/spotter-dev/spotter}
spotter=${BINARY:-}
if [ -z "$spotter" ]; then
  spotter=$work/spotter
  version=${VERSION:-}
  if ours; then
    build "$PWD" "$spotter"
  elif [ "${BUILD:-}" = true ] || [ -z "$version${ACTION_REF:-}" ]; then
    build "$ACTION_PATH" "$spotter"
  else
    [ -n "$version" ] || version=$(released) || wrong "version: $source cannot be read"
    [ -n "$version" ] || wrong "version: no release of Spotter is at $ACTION_REF: name one, or set build to true"
    fetch "$version" "$spotter"
  fi
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
