// Package models contains forecasters: they predict the behaviour of markets within the next hour,
// as numbers in a Snapshot. The closed form only requires Spotter's own experience and published
// data of the provider. It is used wherever a trained model fails or does not apply.
package models
