//go:build race

package drain

// randomDrains is how many random schedules are played.
// The race detector makes each some eight times as slow, and finds in few what it
// finds in many: make test plays all of them without it, too.
const randomDrains = 50

// crashEvery is which of the points of a crash are played.
const crashEvery = 12
