// The functions of real.go without a body are in Kueue.
