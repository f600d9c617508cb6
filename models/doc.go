// Package models makes forecasts: what a market is expected to do within the next hour, as numbers
// in a Snapshot. The closed form needs only Spotter's own experience and what the provider
// publishes. It is used wherever a trained model fails or does not apply.
package models
