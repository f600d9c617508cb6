// Package install follows the README from nothing to a first table, with what `make
// snapshot` has made served in the place of GitHub, and holds the archives, packages and
// manifests of a release.
package install
