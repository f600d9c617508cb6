//go:build !race

package drain

// randomDrains is how many random schedules are played.
const randomDrains = 200
