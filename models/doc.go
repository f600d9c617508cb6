// Package models makes forecasts: what a market is expected to do within the
// next hour, as numbers in a Snapshot. The closed form needs nothing but our
// own experience and what the provider publishes, and stands in wherever a
// trained model fails or does not apply.
package models
