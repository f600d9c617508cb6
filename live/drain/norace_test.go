//go:build !race

package drain

// randomDrains is how many random schedules are played.
const randomDrains = 200

// crashEvery is which of the points of a crash are played.
const crashEvery = 1
