// Package pricelist requests the pages of a provider's price list over HTTP: with a time limit,
// repeated attempts and a bound on what is read. The packages of the providers interpret the pages.
package pricelist
