//go:build !race

package drain

// randomDrains is how many random schedules are run.
const randomDrains = 200

// crashEvery is which of the points of a crash are run.
const crashEvery = 1
