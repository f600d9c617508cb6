// Package whatif plays hours of deploys on real control planes beside each other, whose
// NodePools differ in one setting each, has a real Prometheus scrape them, and holds
// against what they did what `spotter capture --since` and `spotter whatif` say of the
// first of them. `make whatif` plays them; TestRecorded does it from what one such run
// left in testdata.
package whatif
