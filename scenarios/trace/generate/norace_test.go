//go:build !race

package generate

const underRace = false
