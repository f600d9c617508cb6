#!/usr/bin/env bash
# Finds or builds the spotter to run and the one to compare with, and writes
# where they are to $GITHUB_OUTPUT: spotter, base (empty for none) and commit.
#
# Where the repository is Spotter's own, the base is built from the commit to
# compare with. Elsewhere it is the same spotter, run in the files of that
# commit: then the change is what the repository's scenarios say.
set -euo pipefail

work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/spotter.XXXXXX")
module=github.com/spotter-dev/spotter

build() { # folder, target
  local version
  version=$(git -C "$1" describe --tags --always --dirty 2>/dev/null || echo unknown)
  (cd "$1" && go build -buildvcs=false -trimpath -ldflags "-X main.version=$version" -o "$2" ./cmd/spotter)
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
base=${BASE_BINARY:-}
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
elif [ -n "$commit" ]; then
  git worktree add --quiet --detach "$work/base" "$commit"
  base=$work/spotter-base
  if ours; then
    build "$work/base" "$base"
  else
    printf '#!/usr/bin/env bash\ncd %q && exec %q "$@"\n' "$work/base" "$spotter" >"$base"
    chmod +x "$base"
  fi
fi
{
  echo "spotter=$spotter"
  echo "base=$base"
  echo "commit=$commit"
} >>"$GITHUB_OUTPUT"
