// Package whatif plays hours of deploys on several real control planes at once, whose NodePools
// differ in one setting each, and has a real Prometheus scrape them. It compares what they did with
// what `spotter capture --since` and `spotter whatif` say of the first of them. `make whatif` plays
// them; TestRecorded does so from the files that one such run left in testdata.
package whatif
